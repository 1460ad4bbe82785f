"""Scans: which files a query has to read, with which deletes, in which pieces of work."""
