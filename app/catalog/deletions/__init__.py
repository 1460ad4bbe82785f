"""What deletes files: expiry, purge, and the queue that both work through."""
