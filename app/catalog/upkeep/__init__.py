"""Upkeep of tables: properties, health, jobs and their leases."""
