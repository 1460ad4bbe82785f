"""A table with files to plan scans of."""

from __future__ import annotations

import pytest

from app.catalog.context.catalog import Catalog
from app.engine.model.ids import SnapshotId
from tests.builders.planned_scans import append
from tests.builders.table_files import TableFiles
from tests.builders.tables import table_in


@pytest.fixture
def filled(catalog: Catalog) -> list[SnapshotId]:
    """Three snapshots of three files each, in three manifests."""
    table_in(catalog)
    files = TableFiles(catalog.files)
    return [append(catalog, files, [f"{letter}{number}" for number in range(3)]) for letter in "abc"]
