"""Migrations of the database, one file for each revision; `app/database/schema/revisions.py` runs them."""
