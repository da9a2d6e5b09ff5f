"""Rehearsals and drills: traffic of one's own that tries the policy on a running station, and what the records say of
it. Speaks to the station over its feed and to the engine through the public port, as any client does."""
