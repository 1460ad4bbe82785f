"""Parquet: what the footers of data files say."""
