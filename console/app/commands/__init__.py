"""What was asked of the station: from this console, and by others."""
