"""Decides what deserves an alert: a deterministic function of 10-s cells and events in record time, never of a clock.

`judge.Judge` is what the store drives; `alerts` holds what comes out of it and loads next to nothing.
"""
