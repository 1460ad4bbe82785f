"""Statistics of a snapshot's partitions: how many files, rows and deletes each has."""
