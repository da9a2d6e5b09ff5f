"""Screen 3, and every key that changes a policy."""
