"""The bundle for a bug report: one ZIP of redacted parts, with a README that says what is in it."""
