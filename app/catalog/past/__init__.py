"""The past: a warehouse as it was, what was dropped, and how things come back."""
