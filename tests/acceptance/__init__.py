"""Long measurements, run by hand: `make accept`. Results are written beside this file with machine and commit."""
