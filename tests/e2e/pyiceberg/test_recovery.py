"""Disaster drills: the database is lost, or an old backup, and PyIceberg reads everything as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.types import LongType

from tests.e2e.patience import wait_until
from tests.servers.commands import Ended, icetower_command
from tests.servers.icetower import icetower_process
from tests.servers.postgres import PostgresServer

ARROW = pa.schema([pa.field("id", pa.int64()), pa.field("word", pa.string())])
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
}
OFTEN = {"pointer_export_hours": "0.0001", "file_deletion_interval_seconds": "0.05"}
DROPPED = {"sales.dropped"}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "word": [f"word {number}" for number in ids]}, schema=ARROW)


@dataclass
class Site:
    """A catalog that may lose its database."""

    folder: Path
    postgres: PostgresServer | None
    settings: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def serving(self, **settings: str) -> Iterator[RestCatalog]:
        """Run a server until the block ends."""
        with icetower_process(self.folder, **(self.settings | settings)) as url:
            yield RestCatalog("site", uri=url)

    def lose_database(self) -> None:
        if self.postgres is not None:
            self.settings["database_url"] = self.postgres.url(self.postgres.create_database())
            icetower_command(self.folder, "migrate", **self.settings)
        for file in self.folder.glob("icetower.db*"):
            file.unlink()

    @property
    def exports(self) -> Path:
        return self.folder / "warehouse" / ".icetower" / "pointers" / "default"

    def run(self, *arguments: str) -> Ended:
        done = icetower_command(self.folder, *arguments, **self.settings)
        assert done.status == 0, done.err
        return done

    def export(self) -> None:
        """Let a server write an export that says what is there now."""
        before = self.newest_export()
        with self.serving(**OFTEN):
            wait_until(lambda: self.newest_export() != before)

    def newest_export(self) -> Path | None:
        return max(self.exports.glob("*.ndjson.gz"), default=None)


@pytest.fixture(
    params=["sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.nightly])]
)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    made = Site(tmp_path, None)
    if request.param == "postgres":
        made.postgres = request.getfixturevalue("postgres_server")
        made.lose_database()
    return made


def live_a_while(catalog: RestCatalog) -> None:
    """Make tables, views, branches, properties; drop some; let old metadata files go."""
    catalog.create_namespace("sales", {"owner": "anna", "place": "Berlin"})
    catalog.create_namespace(("sales", "eu"), {"depth": "two"})
    catalog.create_namespace("empty", {"left": "alone"})
    for name in ("sales.orders", "sales.eu.orders", "sales.dropped"):
        table = catalog.create_table(name, schema=ARROW, properties={"team": name})
        for number in range(3):
            table.append(rows(number, number + 10))
    orders = catalog.load_table("sales.orders")
    head = orders.metadata.current_snapshot_id
    assert head is not None
    orders.manage_snapshots().create_branch(head, "audit").create_tag(head, "v1").commit()
    orders.append(rows(99), branch="audit")
    with orders.update_schema() as update:
        update.add_column("more", LongType())
    short = catalog.create_table(
        "sales.short",
        schema=ARROW,
        properties={
            "write.metadata.delete-after-commit.enabled": "true",
            "write.metadata.previous-versions-max": "1",
        },
    )
    for number in range(6):
        short.append(rows(number))
    catalog.drop_table("sales.dropped")
    for name in ("recent", "early"):
        make_view(catalog, name)


def make_view(catalog: RestCatalog, name: str) -> None:
    version: dict[str, Any] = {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": 1_700_000_000_000,
        "summary": {},
        "default-namespace": ["sales"],
        "representations": [{"type": "sql", "dialect": "spark", "sql": f"SELECT id FROM {name}"}],
    }
    body = {"name": name, "schema": SCHEMA, "view-version": version, "properties": {}}
    httpx.post(f"{catalog.uri}/v1/namespaces/sales/views", json=body).raise_for_status()
    if name == "recent":
        version |= {"version-id": 2, "timestamp-ms": 1_700_000_900_000}
        version["representations"] = [{"type": "sql", "dialect": "spark", "sql": "SELECT 2 AS id"}]
        updates = [
            {"action": "add-view-version", "view-version": version},
            {"action": "set-current-view-version", "view-version-id": -1},
        ]
        httpx.post(
            f"{catalog.uri}/v1/namespaces/sales/views/recent", json={"updates": updates}
        ).raise_for_status()


def seen(catalog: RestCatalog) -> dict[str, Any]:
    """Return all that a client sees of a catalog."""
    found: dict[str, Any] = {}
    unread = list(catalog.list_namespaces())
    while unread:
        namespace = unread.pop()
        unread += catalog.list_namespaces(namespace)
        found[".".join(namespace)] = catalog.load_namespace_properties(namespace)
        for identifier in catalog.list_tables(namespace):
            table = catalog.load_table(identifier)
            found[".".join(identifier)] = (
                table.metadata_location,
                table.metadata.model_dump_json(),
                {name: sorted_ids(table, ref.snapshot_id) for name, ref in table.metadata.refs.items()},
            )
        for identifier in catalog.list_views(namespace):
            path = "%1F".join(identifier[:-1])
            view = httpx.get(f"{catalog.uri}/v1/namespaces/{path}/views/{identifier[-1]}").json()
            found[".".join(identifier)] = (view["metadata-location"], view["metadata"])
    return found


def sorted_ids(table: Any, snapshot_id: int) -> list[int]:
    return sorted(table.scan(snapshot_id=snapshot_id).to_arrow()["id"].to_pylist())


def test_a_lost_database_comes_back_with_its_export(site: Site) -> None:
    with site.serving() as catalog:
        live_a_while(catalog)
        catalog.rename_table("sales.eu.orders", "sales.eu.renamed")
        settings = {"default-properties": {"icetower.undrop.keep-ms": "9000000", "token": "hunter2"}}
        httpx.patch(f"{catalog.uri}/management/v1/warehouses/default", json=settings).raise_for_status()
        before = seen(catalog)
        drops = httpx.get(f"{catalog.uri}/v1/dropped").json()["dropped"]
    site.export()
    # After the export: its rows are in storage, and names of new tables in their locations.
    with site.serving() as catalog:
        catalog.load_table("sales.orders").append(rows(1000))
        catalog.load_table("sales.short").append(rows(1000))
        catalog.create_table("sales.new", schema=ARROW).append(rows(5))
        after = seen(catalog)
    assert after != before
    site.lose_database()

    planned = site.run("rebuild", "--dry-run", "--json").lines
    with site.serving() as catalog:
        assert seen(catalog) == {}
    site.run("rebuild", "--yes")

    dropped = next(line for line in planned if line.get("name") == "dropped")
    assert dropped["action"] == "leave"
    assert "undrop brings it back until" in dropped["reason"]
    with site.serving() as catalog:
        assert seen(catalog) == after
        left = httpx.get(f"{catalog.uri}/management/v1/warehouses/default").json()
        assert left["default-properties"] == {"icetower.undrop.keep-ms": "9000000"}
        # It can come back as long as before the database was lost.
        noted = [{key: drop[key] for key in drop if key != "id"} for drop in drops]
        found = httpx.get(f"{catalog.uri}/v1/dropped").json()["dropped"]
        assert [{key: drop[key] for key in drop if key != "id"} for drop in found] == noted
        httpx.post(
            f"{catalog.uri}/v1/undrop", json={"namespace": ["sales"], "name": "dropped"}
        ).raise_for_status()
        table = catalog.load_table("sales.dropped")
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 10, 11, 12]
        table.append(rows(7))
        catalog.load_table("sales.orders").append(rows(1001))
        httpx.get(f"{catalog.uri}/v1/namespaces/sales/tables/short").raise_for_status()
    # Once more: nothing to do.
    assert site.run("rebuild", "--yes", "--json").lines[-1]["summary"]["done"] == 0


def test_a_lost_database_comes_back_without_an_export(site: Site) -> None:
    with site.serving() as catalog:
        live_a_while(catalog)
        before = seen(catalog)
    site.lose_database()

    site.run("rebuild", "--yes")

    with site.serving() as catalog:
        after = seen(catalog)
    # What is nowhere but in the database is lost: properties of namespaces, and that a table was dropped.
    assert set(after) - DROPPED == set(before) - {"empty"}
    tables = {name for name, what in before.items() if isinstance(what, tuple)}
    assert {name: after[name] for name in tables} == {name: before[name] for name in tables}


def test_an_old_backup_is_brought_forward(tmp_path: Path) -> None:
    site = Site(tmp_path, None)
    with site.serving() as catalog:
        live_a_while(catalog)
        site.run("backup", str(tmp_path / "saved.db"))
        for number in range(8):
            catalog.load_table("sales.orders").append(rows(100 + number))
            catalog.load_table("sales.short").append(rows(100 + number))
        catalog.create_table("sales.new", schema=ARROW).append(rows(5))
        before = seen(catalog)
    site.lose_database()
    (tmp_path / "saved.db").rename(tmp_path / "icetower.db")

    done = site.run("rebuild", "--yes", "--json").lines

    with site.serving() as catalog:
        assert seen(catalog) == before
        history = httpx.get(f"{catalog.uri}/v1/namespaces/sales/tables/orders/history").json()
    assert "rebuilt" in str(history)
    actions = {line["name"]: line["action"] for line in done if "action" in line}
    assert actions["orders"] in ("advance", "keep")
    assert actions["new"] == "add"
    dropped = next(line for line in done if line.get("name") == "dropped")
    assert dropped["reason"] == "it was dropped; its files stayed"
    assert site.run("rebuild", "--yes", "--json").lines[-1]["summary"]["done"] == 0
