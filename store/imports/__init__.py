"""Readers for records of others: vLLM's answers, its /metrics, its log. Pure parsing: nothing here opens a store."""
