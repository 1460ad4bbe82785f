"""Bodies of the routes below one table."""
