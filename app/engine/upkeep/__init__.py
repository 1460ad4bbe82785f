"""Upkeep: which jobs keep a table healthy, and which of them are worth doing now."""
