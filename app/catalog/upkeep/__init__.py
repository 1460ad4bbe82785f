"""Upkeep of tables: properties, health, jobs, and the work that moves no data."""
