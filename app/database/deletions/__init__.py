"""Files that are to go: the queue, what was marked, and who else may need them."""
