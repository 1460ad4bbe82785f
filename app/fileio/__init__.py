"""Bytes at locations: read, write if absent, delete, list. Knows no file format, no row and no HTTP.

The only room that knows stores and the operating system's files. Locations are byte-exact: what a caller
hands in is what it gets back, and percent signs, spaces and letters of any script mean themselves.
"""
