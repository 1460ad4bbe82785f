"""A catalog on SQLite with files in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.catalog.context import Catalog
from app.database.warehouses import Warehouse
from tests.builders.catalogs import catalog_on, warehouse_in


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return catalog_on(f"sqlite:///{tmp_path}/icetower.db")


@pytest.fixture
def warehouse(catalog: Catalog) -> Warehouse:
    return warehouse_in(catalog)
