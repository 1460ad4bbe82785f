"""Several warehouses on one server: each has its own names, files and properties."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

NUMBERS = Schema(NestedField(1, "id", LongType()))


def test_warehouses_share_nothing(catalog: RestCatalog, namespace: str, tmp_path: Path) -> None:
    name, location = f"sales-of-{namespace}", f"file://{tmp_path}"
    sales = {"name": name, "root-location": location, "default-properties": {"a": "1"}}
    httpx.post(f"{catalog.uri}/management/v1/warehouses", json=sales).raise_for_status()
    other = RestCatalog("sales", uri=catalog.uri, warehouse=name)
    by_location = RestCatalog("sales", uri=catalog.uri, warehouse=location)

    other.create_namespace(namespace)
    catalog.create_table((namespace, "here"), NUMBERS)
    table = other.create_table((namespace, "there"), NUMBERS)

    assert catalog.list_tables(namespace) == [(namespace, "here")]
    assert other.list_tables(namespace) == by_location.list_tables(namespace) == [(namespace, "there")]
    assert table.location().startswith(f"file://{tmp_path}/")
    assert other.properties["a"] == "1"
    assert (namespace,) in catalog.list_namespaces()
    assert other.list_namespaces() == [(namespace,)]


def test_an_unknown_warehouse_is_told(catalog: RestCatalog) -> None:
    with pytest.raises(Exception, match="nowhere"):
        RestCatalog("nowhere", uri=catalog.uri, warehouse="nowhere")


def test_a_bare_address_means_the_default_warehouse(catalog: RestCatalog, namespace: str) -> None:
    by_name = RestCatalog("default", uri=catalog.uri, warehouse="default")

    assert by_name.namespace_exists(namespace)
