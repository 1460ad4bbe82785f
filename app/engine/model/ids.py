"""Ids and locations as types of their own, so that a checker tells them apart."""

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
