"""Retention: which snapshots a table may let go, and which files nothing reaches any more."""
