"""The rehearsal as the console starts, shows and ends it."""
