"""Namespaces whose warehouse another server drops."""

from __future__ import annotations

import pytest

from app.catalog.context.catalog import Catalog
from app.catalog.namespaces import create_namespace
from app.errors import NoSuchWarehouse
from tests.builders.catalogs import START_MS
from tests.builders.tables import FLIGHTS


@pytest.mark.parametrize("comes_back", [False, True])
def test_namespace_is_not_made_in_a_warehouse_that_is_gone(catalog: Catalog, *, comes_back: bool) -> None:
    warehouses, here = catalog.server.warehouses, catalog.warehouse
    warehouses.drop(here.name)
    if comes_back:
        warehouses.create(here.name, here.root_location, created_ms=START_MS)

    with pytest.raises(NoSuchWarehouse, match=here.name):
        create_namespace(catalog, FLIGHTS, {})

    assert catalog.find_namespace(FLIGHTS) is None
