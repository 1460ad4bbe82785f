"""Metadata files of tables and views: their names, and their contents."""
