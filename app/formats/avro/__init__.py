"""Avro: files to entries and records, and back. Other rooms use what this package exports, and nothing inside it.

`open_avro` takes a file apart, `read_entries` finds the entries of a manifest in it, `named_packer` packs records,
`write_packed` makes a file of them.
"""

from __future__ import annotations

from app.formats.avro.container import AvroFile, TooLargeError, cost_within, open_avro
from app.formats.avro.entry_columns import EntryColumns, read_entries
from app.formats.avro.packers import named_packer, write_packed

__all__ = [
    "AvroFile",
    "EntryColumns",
    "TooLargeError",
    "cost_within",
    "named_packer",
    "open_avro",
    "read_entries",
    "write_packed",
]
