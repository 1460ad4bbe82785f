"""Registrations of this catalog: new numbers, and under which one a table's files are kept."""

from __future__ import annotations

import secrets

from app.catalog.context.catalog import Catalog
from app.engine.model.table_metadata import TableMetadata


def new_registration() -> int:
    """Return a number that no other registration has."""
    return secrets.randbits(62) + 1


def registration_of(catalog: Catalog, table: TableMetadata | None) -> int:
    """Return the number under which a table's manifests are kept; without a table, a new one."""
    if table is None:
        return new_registration()
    # Each version of a file-system table has a number of its own, and manifests stay what they were.
    return table.registration if catalog.has_rows else 0
