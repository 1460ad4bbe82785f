"""Upkeep: how healthy tables are, which jobs mend them, and the jobs that move no data."""
