"""Spark, as jobs use it: sessions, SQL, procedures, failures."""
