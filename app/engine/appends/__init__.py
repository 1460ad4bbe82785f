"""Appends by reference: what files that are in storage already become in a table."""
