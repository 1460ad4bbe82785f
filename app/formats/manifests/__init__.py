"""Manifests and manifest lists: read, written, and kept in memory and on disk."""
