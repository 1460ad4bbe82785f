"""Rebuilding: from the files of a warehouse back to names and pointers."""
