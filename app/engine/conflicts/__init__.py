"""Conflicts: what happened on a branch that keeps an operation from being committed."""
