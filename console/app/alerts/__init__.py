"""Screen 4: what is wrong, what may be, and what was."""
