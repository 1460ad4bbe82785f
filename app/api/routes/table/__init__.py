"""Routes below one table, and the listing of tables."""
