"""When to tell somebody, and how often: shared by the console, which shows and rings, and the station, which posts."""
