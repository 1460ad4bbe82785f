"""What is wrong with a file that should be Parquet."""

from __future__ import annotations


class NotParquetError(Exception):
    """The bytes are not the end of a Parquet file that can be read; says why."""
