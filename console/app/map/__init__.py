"""Screen 5: the operating map."""
