"""Filters: their JSON, what they mean on a schema's columns, and which files they cannot match.

One law governs the room: a file that may hold a matching row is never pruned. Knows nothing of snapshots and scans.
"""
