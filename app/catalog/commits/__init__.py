"""Commits: intentions as values, and the one door to the pointers."""
