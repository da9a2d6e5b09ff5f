"""Plans of rehearsals: written in TOML or built in, checked, and drawn into requests with their moments."""
