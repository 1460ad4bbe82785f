"""Selection: which files may match a filter, and which deletes apply to a file. What is unknown counts as a match."""
