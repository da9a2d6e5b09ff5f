"""Redaction: takes out of records and of text what is nobody else's business. `store.redact.redactor` is the way in."""
