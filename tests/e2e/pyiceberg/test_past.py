"""PyIceberg mounts the catalog as it was, and reads what has been dropped since."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import ForbiddenError, NoSuchTableError

pytestmark = pytest.mark.slow


def moment() -> str:
    """Return a time after all that was done, once it has passed."""
    then_ms = time.time_ns() // 1_000_000 + 1
    while time.time_ns() // 1_000_000 <= then_ms:
        pass
    return str(then_ms)


def as_of(catalog: RestCatalog, at: str) -> RestCatalog:
    return RestCatalog("was", uri=catalog.uri, warehouse=f"default@{at}")


def rows(ids: list[int]) -> Any:
    return pa.table({"id": pa.array(ids, pa.int64())})


def test_past_is_read_beside_the_present(catalog: RestCatalog, namespace: str) -> None:
    table = catalog.create_table(f"{namespace}.t", rows([]).schema)
    table.append(rows([1, 2]))
    catalog.create_table(f"{namespace}.gone", rows([]).schema).append(rows([7]))
    was = as_of(catalog, moment())
    table.append(rows([3]))
    catalog.drop_table(f"{namespace}.gone")
    catalog.rename_table(f"{namespace}.t", f"{namespace}.u")

    assert was.list_tables(namespace) == [(namespace, "gone"), (namespace, "t")]
    assert sorted(was.load_table(f"{namespace}.t").scan().to_arrow()["id"].to_pylist()) == [1, 2]
    assert was.load_table(f"{namespace}.gone").scan().to_arrow()["id"].to_pylist() == [7]
    assert sorted(catalog.load_table(f"{namespace}.u").scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    assert not was.table_exists(f"{namespace}.u")
    with pytest.raises(NoSuchTableError):
        was.load_table(f"{namespace}.u")
    with pytest.raises(NotImplementedError, match="does not support endpoint"):
        was.load_table(f"{namespace}.t").append(rows([4]))
    with pytest.raises(NotImplementedError, match="does not support endpoint"):
        was.drop_table(f"{namespace}.t")
    with pytest.raises(NotImplementedError, match="does not support endpoint"):
        was.create_namespace("new")


def test_dropped_table_comes_back(catalog: RestCatalog, namespace: str) -> None:
    catalog.create_table(f"{namespace}.t", rows([]).schema).append(rows([1, 2]))
    catalog.drop_table(f"{namespace}.t")

    answer = httpx.post(f"{catalog.uri}/v1/undrop", json={"namespace": [namespace], "name": "t"})

    assert answer.status_code == 200
    table = catalog.load_table(f"{namespace}.t")
    table.append(rows([3]))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_protected_table_says_how_to_lift_it(catalog: RestCatalog, namespace: str) -> None:
    catalog.create_table(f"{namespace}.t", rows([]).schema, properties={"icetower.protected": "true"})

    with pytest.raises(ForbiddenError, match="Set it to false there"):
        catalog.drop_table(f"{namespace}.t")
    with pytest.raises(ForbiddenError, match="Set it to false there"):
        catalog.purge_table(f"{namespace}.t")
    with pytest.raises(ForbiddenError, match="Set it to false there"):
        catalog.rename_table(f"{namespace}.t", f"{namespace}.u")
    table = catalog.load_table(f"{namespace}.t")
    with table.transaction() as transaction:
        transaction.set_properties({"icetower.protected": "false"})
    catalog.drop_table(f"{namespace}.t")
