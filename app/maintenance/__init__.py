"""Maintenance: jobs of upkeep, carried out through the REST API and on PySpark."""
