"""Health: facts about a table's files, manifests and metadata, and what they mean."""
