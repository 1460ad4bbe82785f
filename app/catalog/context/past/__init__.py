"""A warehouse as it was at a moment."""
