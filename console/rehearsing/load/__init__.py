"""The load generator, a process of its own: each request at its intended moment, whatever became of the others."""
