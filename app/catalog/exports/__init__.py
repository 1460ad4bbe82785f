"""Exports: names and pointers, written down beside the tables, for a lost database."""
