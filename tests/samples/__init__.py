"""Records the sample traces on the real engine: `python -m tests.samples NAME`, or `make samples ARGS=NAME`."""
