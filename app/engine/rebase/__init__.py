"""Rebasing: commits that lost a race and land all the same, and what they become."""
