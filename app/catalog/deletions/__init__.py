"""Deleting files: expiry, purge, and their queue."""
