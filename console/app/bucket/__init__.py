"""Screen 2: one bucket through time."""
