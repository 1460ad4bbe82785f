"""Icetower, the control tower for Apache Iceberg tables."""
