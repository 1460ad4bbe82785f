"""Rewriting manifests: which ones are worth it, and which entry goes to which new manifest."""
