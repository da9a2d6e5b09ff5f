"""Screen 7: what the engine is and what it executes."""
