"""The operator's settings file, `specdeck.toml`: command line > environment > file > default."""
