"""A catalog inside a test: context manager and pytest plugin."""
