"""What comes to the operator by itself: passing notes, the terminal's bell, notifications of the desktop."""
