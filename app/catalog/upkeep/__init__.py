"""Upkeep: how healthy tables are, and what mends them without moving data."""
