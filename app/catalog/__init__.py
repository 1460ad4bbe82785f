"""What the service does: one function per use case, where engine, files and database meet."""
