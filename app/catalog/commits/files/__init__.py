"""The files of a commit: those it writes, names, and lets go."""
