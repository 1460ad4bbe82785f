"""Filters: their JSON, their meaning on a schema's columns, and files that cannot match.

The law of this room: a file that may have a matching row is never pruned. It knows nothing of snapshots and scans.
"""
