"""Stores over a network, each with its own way to write only once."""
