"""Scans: which files a query has to read, with which deletes, and how they are cut into pieces of work."""
