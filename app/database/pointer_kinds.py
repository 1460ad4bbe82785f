"""What a pointer points to: a table's or a view's metadata."""

from __future__ import annotations

from enum import StrEnum


class PointerKind(StrEnum):
    """The kind is part of the row, and not of its name: a table and a view cannot share one."""

    TABLE = "table"
    VIEW = "view"
