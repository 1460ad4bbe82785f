"""Conflicts: what happened to a branch since an operation began, and what keeps the operation from being committed."""
