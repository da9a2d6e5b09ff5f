"""What is remembered: schema, ingest, rollups, metrics, traces, export. Imports `engine`, never `console`."""
