"""The operating map: under which load which draft length helps, on one machine with one configuration."""
