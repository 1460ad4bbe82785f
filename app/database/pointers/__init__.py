"""Pointers: the current metadata file of each table and view, found, moved and recorded."""
