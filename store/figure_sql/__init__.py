"""Queries that give a figure again from a store's documented tables. Text only: neither DuckDB nor numpy is loaded, so
the console can make them.

None holds a double quote, a dollar, a backquote, a backslash or an exclamation mark, so every shell takes one between
double quotes as it stands; and no control character, whatever a workload is called.
"""
