"""Scan planning: at once, in plan tasks, or in the background."""
