"""Connections to SQLite and Postgres: how they are made, and what their errors mean."""
