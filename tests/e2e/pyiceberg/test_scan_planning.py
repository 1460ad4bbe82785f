"""PyIceberg that leaves planning to the server: it reads the same rows, also from two servers on one database."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.expressions import AlwaysTrue, BooleanExpression, GreaterThan
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import Table

from tests.builders.databases import migrated_database_of
from tests.servers.icetower import icetower_process
from tests.servers.postgres import PostgresServer

FILTERS: tuple[str | BooleanExpression, ...] = (
    AlwaysTrue(), "id > 25", "word = 'a' or id = 4", "word in ('b', 'c') and id < 12", "size > 3.5", "id < 0",
)  # fmt: skip


def write(catalog: RestCatalog, namespace: str, version: int) -> None:
    """Append to a table whose partitioning and columns change on the way, and overwrite a part of it."""
    first = pa.table(
        {
            "id": pa.array(range(30)),
            "word": pa.array(["a", "b", "c"] * 10),
            "size": pa.array([n / 4 for n in range(30)]),
        }
    )
    table = catalog.create_table(
        (namespace, f"v{version}"), first.schema, properties={"format-version": str(version)}
    )
    table.append(first)
    with table.update_spec() as spec:
        spec.add_identity("word")
    table.append(first.slice(0, 9))
    with table.update_schema() as schema:
        schema.add_column("extra", table.schema().find_type("id"))
    if version > 1:
        # In version 1 the field would stay as one of nulls, and PyIceberg 0.12 takes no null in a planned partition.
        with table.update_spec() as spec:
            spec.remove_field("word")
    table.append(
        first.slice(9, 5).append_column("extra", pa.array(range(5))).cast(schema_to_pyarrow(table.schema()))
    )
    table.delete("id = 11")


def rows(table: Table, condition: str | BooleanExpression) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.scan(row_filter=condition).to_arrow().to_pylist()
    return sorted(found, key=str)


# PyIceberg does not write version 3.
@pytest.mark.parametrize("version", [1, 2])
def test_rows_are_the_same_whoever_plans(catalog: RestCatalog, namespace: str, version: int) -> None:
    write(catalog, namespace, version)
    asking = RestCatalog("server", uri=catalog.uri, **{"scan-planning-mode": "server"})
    by_server, by_client = (each.load_table((namespace, f"v{version}")) for each in (asking, catalog))

    for condition in FILTERS:
        assert rows(by_server, condition) == rows(by_client, condition), condition
    assert len(rows(by_server, AlwaysTrue())) == 30 + 9 + 5 - 2


def test_moments_are_asked_for_without_their_zone(catalog: RestCatalog, namespace: str) -> None:
    noon = datetime(2026, 11, 27, 12, tzinfo=UTC)
    moments = pa.table({"at": pa.array([noon, noon + timedelta(hours=1)], pa.timestamp("us", tz="UTC"))})
    catalog.create_table((namespace, "moments"), moments.schema).append(moments)
    asking = RestCatalog("server", uri=catalog.uri, **{"scan-planning-mode": "server"})

    later: BooleanExpression = GreaterThan("at", noon)  # type: ignore[call-arg, arg-type]  # as its docs write it

    found = rows(asking.load_table((namespace, "moments")), later)

    assert found == [{"at": noon + timedelta(hours=1)}]


@pytest.fixture
def two_servers(tmp_path: Path, postgres_server: PostgresServer) -> Iterator[tuple[str, str]]:
    """Two processes on one database and one warehouse, whose answers have two files."""
    settings = {
        "database_url": postgres_server.url(migrated_database_of(postgres_server)),
        "default_warehouse_location": str(tmp_path / "warehouse"),
        "scan_page_files": "2",
    }
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with (
        icetower_process(tmp_path / "one", **settings) as one,
        icetower_process(tmp_path / "two", **settings) as two,
    ):
        yield one, two


@pytest.mark.postgres
def test_either_of_two_servers_expands_what_the_other_planned(two_servers: tuple[str, str]) -> None:
    catalog = RestCatalog("one", uri=two_servers[0])
    catalog.create_namespace("shared")
    write(catalog, "shared", 2)
    path = "/v1/namespaces/shared/tables/v2"
    whole = sorted(str(task.file.file_path) for task in catalog.load_table("shared.v2").scan().plan_files())

    def expand(url: str, token: str) -> list[str]:
        page = httpx.post(f"{url}{path}/tasks", json={"plan-task": token}).json()
        found = [task["data-file"]["file-path"] for task in page["file-scan-tasks"]]
        return found + [name for more in page["plan-tasks"] for name in expand(url, more)]

    for planner, others in ((two_servers[0], two_servers), (two_servers[1], two_servers)):
        tokens = httpx.post(f"{planner}{path}/plan", json={}).json()["plan-tasks"]
        assert len(tokens) > 1
        for other in others:
            with ThreadPoolExecutor(8) as threads:
                once, again = (
                    sorted(chain(*threads.map(expand, [other] * len(tokens), tokens))) for _ in range(2)
                )
            assert once == again == whole


@pytest.mark.postgres
def test_pyiceberg_follows_the_tasks_of_a_long_plan(two_servers: tuple[str, str]) -> None:
    catalog = RestCatalog("one", uri=two_servers[0])
    catalog.create_namespace("shared")
    write(catalog, "shared", 2)
    asking = RestCatalog("two", uri=two_servers[1], **{"scan-planning-mode": "server"})

    for condition in FILTERS:
        assert rows(asking.load_table("shared.v2"), condition) == rows(
            catalog.load_table("shared.v2"), condition
        )
