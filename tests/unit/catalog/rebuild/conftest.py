"""Two catalogs on one store: one whose database is lost, and one that is rebuilt."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.catalog.context.catalog import Catalog
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import (
    START_MS,
    Clock,
    catalog_on,
    with_server,
)


@pytest.fixture
def store() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def lost(tmp_path: Path, store: MemoryFiles) -> Catalog:
    """A catalog whose database is going to be lost."""
    return catalog_on(f"sqlite:///{tmp_path}/lost.db", store)


@pytest.fixture
def found(tmp_path: Path, store: MemoryFiles) -> Catalog:
    """The same files with an empty database, an hour later."""
    catalog = catalog_on(f"sqlite:///{tmp_path}/found.db", store)
    return with_server(catalog, now_ms=Clock(START_MS + 3_600_000))
