"""Rows. The only room that knows SQL; rows never see files."""
