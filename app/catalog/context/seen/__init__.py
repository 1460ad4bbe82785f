"""What this process has seen: traffic, reads, requests, files that are live."""
