"""What stands around every screen: status and key lines, pages, dialogs, and what guards a key."""
