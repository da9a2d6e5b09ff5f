"""What a replay adds to every screen: its clock, its keys, the time bar, what-if."""
