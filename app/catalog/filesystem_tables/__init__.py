"""File-system tables: the names of metadata files are the pointers, as in Iceberg's own Hadoop catalog."""
