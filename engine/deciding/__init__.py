"""Deciding K: what a workload's draft length buys at the present load, and when to change it (design §9).

Once a second `decide.decide` is told what the engine did lately (`estimates.Estimates`, which `observer.Observer` makes
of its steps) and says what should change. It is a function: what it must remember goes in and comes out
(`memory.Memory`). Arithmetic only: no engine, no clock, no store.
"""
