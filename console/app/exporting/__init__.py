"""Exporting what was recorded: where to, in what form, since when."""
