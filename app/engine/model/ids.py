"""Ids and locations as types of their own, which the type checker keeps apart."""

from __future__ import annotations

from typing import NewType

SnapshotId = NewType("SnapshotId", int)
SchemaId = NewType("SchemaId", int)
SpecId = NewType("SpecId", int)
SortOrderId = NewType("SortOrderId", int)
FieldId = NewType("FieldId", int)
TableUuid = NewType("TableUuid", str)
Location = NewType("Location", str)

NO_SNAPSHOT = SnapshotId(-1)
"""How versions 1 and 2 of the table format write that there is no snapshot."""


def is_same_uuid(one: str, other: str) -> bool:
    """Return whether two texts are one uuid: clients that parse it print it in lower case."""
    return one.lower() == other.lower()
