"""The tables of the database, and how they came to be: migrations, revisions, indexes."""
