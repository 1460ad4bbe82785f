"""Connections to SQLite and Postgres: how they are made, what their errors mean, and three outcomes of a write."""
