"""The feed: what a console and a station (or a replay) say to each other. See `messages` and `protocol`."""
