"""Rehearsals: what was planned, what each request came to, and the figures that follow from both."""
