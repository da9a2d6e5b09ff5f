"""Passes of a rehearsal: which arm meets the traffic when, on which engine, and what is kept of it."""
