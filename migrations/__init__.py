"""Migrations of the database, one file for each revision; `app/database/revisions.py` runs them."""
