"""Which snapshots a table may expire, and which files are no longer reachable."""
