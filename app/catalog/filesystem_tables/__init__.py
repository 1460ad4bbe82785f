"""File-system tables: the names of metadata files are their pointers."""
