"""Two stretches of record side by side, of one source or two: `measure` takes a side, `compare` holds both together."""
