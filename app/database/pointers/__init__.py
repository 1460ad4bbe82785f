"""Pointers: which metadata file each table and view is at, how that is looked up, moved and recorded."""
