"""Maintenance: jobs of upkeep carried out through the REST API; those that move data run on PySpark."""
