"""Screen 6: traces that are there, and the recording that goes on."""
