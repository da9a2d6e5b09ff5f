"""Gathers, redacts and writes what `specdeck bundle` makes a file of. Loaded when the command runs."""
