"""Health and profiles beside PyIceberg's own `inspect` tables, of files that PyIceberg writes."""

from __future__ import annotations

from typing import Any

import httpx
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table

ARROW = pa.schema([("id", pa.int64()), ("word", pa.string()), ("price", pa.float64())])


def rows(first: int, word: str | None) -> pa.Table:
    """Return ten rows of one word, every second of them without a price."""
    ids = list(range(first, first + 10))
    prices = [float("nan") if number % 2 else float(number) for number in ids]
    return pa.table({"id": ids, "word": [word] * 10, "price": prices}, schema=ARROW)


@pytest.fixture
def table(catalog: RestCatalog, namespace: str) -> Table:
    """A table by word: five appends, a deletion that writes files anew, and files without a partition."""
    made: Table = catalog.create_table((namespace, "t"), ARROW)
    made.append(rows(0, "before"))
    with made.update_spec() as spec:
        spec.add_identity("word")
    for number, word in enumerate(("a", "b", "a", None), 1):
        made.append(rows(number * 100, word))
    made.delete("id >= 300 and id < 305")
    return made


def asked(catalog: RestCatalog, table: Table, what: str) -> dict[str, Any]:
    namespace, name = table.name()
    answer = httpx.get(f"{catalog.uri}/v1/namespaces/{namespace}/tables/{name}/{what}", timeout=60)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_facts_equal_what_pyiceberg_inspects(catalog: RestCatalog, table: Table) -> None:
    health = asked(catalog, table, "health")

    files, manifests = table.inspect.files(), table.inspect.manifests()
    found = health["files"]
    assert found["data-files"] == files.num_rows
    assert found["data-bytes"] == pc.sum(files["file_size_in_bytes"]).as_py()
    assert found["rows"] == pc.sum(files["record_count"]).as_py() == 45
    assert found["partitions"] == table.inspect.partitions().num_rows
    assert found["old-spec-files"] == 1
    assert found["delete-files"] == 0
    assert health["manifests"]["data-manifests"] == manifests.num_rows
    assert health["manifests"]["total-bytes"] == pc.sum(manifests["length"]).as_py()
    assert health["metadata"]["snapshots"] == table.inspect.snapshots().num_rows


def test_profile_equals_readable_metrics(catalog: RestCatalog, table: Table) -> None:
    profile = asked(catalog, table, "profile")

    metrics = table.inspect.files()["readable_metrics"].to_pylist()
    for column in profile["columns"]:
        of_files = [found[column["name"]] for found in metrics]
        for name, key in (("value-count", "value_count"), ("null-count", "null_value_count")):
            known = [found[key] for found in of_files if found[key] is not None]
            assert (column.get(name), column[f"{name}-files"]) == (sum(known), len(known))
        lower = [found["lower_bound"] for found in of_files if found["lower_bound"] is not None]
        assert (column["lower-bound"], column["lower-bound-files"]) == (min(lower), len(lower))
        upper = [found["upper_bound"] for found in of_files if found["upper_bound"] is not None]
        assert column["upper-bound"] == max(upper)


def test_the_warehouse_lists_it(catalog: RestCatalog, table: Table) -> None:
    listed: list[dict[str, Any]] = []
    query: dict[str, Any] | None = {"pageToken": "", "pageSize": 7}
    while query:
        page = httpx.get(f"{catalog.uri}/v1/health", params=query, timeout=60).json()
        listed += page["tables"]
        token = page.get("next-page-token")
        query = token and {"pageToken": token, "pageSize": 7}

    (ours,) = [found for found in listed if [*found["namespace"], found["table"]] == list(table.name())]
    assert ours["summary-totals"]["data-files"] == table.inspect.files().num_rows
