"""Screen 1: the bucket table and the charts under it."""
