"""Avro: files to entries and records, and back. Other rooms use what this package exports, and nothing inside it.

`open_avro` takes a file apart, `read_entries` finds the entries of a manifest in it, `pick_fields` reads some columns
of them only, `count_columns` and its like take metrics apart, a `Packing` packs records, `write_packed` makes a file
of them, `compile_type` says what a schema describes, and refuses one that has no bounds.
"""

from __future__ import annotations

from app.formats.avro.container import AvroFile, KnownRecords, TooLargeError, cost_within, open_avro
from app.formats.avro.entry_columns import EntryColumns, read_entries
from app.formats.avro.entry_picks import PickedFields, pick_fields
from app.formats.avro.metric_columns import bound_columns, count_columns, count_sums
from app.formats.avro.packers import Packing, write_packed
from app.formats.avro.schema_types import compile_type

__all__ = [
    "AvroFile",
    "EntryColumns",
    "KnownRecords",
    "Packing",
    "PickedFields",
    "TooLargeError",
    "bound_columns",
    "compile_type",
    "cost_within",
    "count_columns",
    "count_sums",
    "open_avro",
    "pick_fields",
    "read_entries",
    "write_packed",
]
