"""Comparing in the console: two buckets, or a bucket now with its past or with another model version."""
