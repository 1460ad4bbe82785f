"""Filters: their JSON, what they mean on a schema's columns, and which files they cannot match.

The law of this room: a file that may have a matching row is never pruned. It knows nothing of snapshots and scans.
"""
