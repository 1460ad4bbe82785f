"""Branches and tags: how they move, and how one branch repeats what another changed."""
