"""Calls about one table."""
