"""Hypothesis strategies for what the engine works on: documents, update lists, and noise."""
