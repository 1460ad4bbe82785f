"""A catalog on SQLite with files in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.catalog.context.catalog import Catalog
from tests.builders.catalogs import catalog_on


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return catalog_on(f"sqlite:///{tmp_path}/icetower.db")
