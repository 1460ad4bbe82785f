"""What distinguishes two states of a table: their files, their metadata, their columns."""
