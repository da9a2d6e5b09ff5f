"""A deterministic engine: workloads with known acceptance, steps that take a known time, and the real draft lengths.

`engine.Simulated` makes steps with `engine.drafting` as a scheduler does; `station.Station` feeds the controller what a
station would know of them; `run` puts the two together. Times are seconds of the simulated clock.
"""
