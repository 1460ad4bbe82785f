"""`icetower table orphans` against a real server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.testing import icetower_catalog
from tests.unit.cli.conftest import Icetower

TEN_DAYS_S = 10 * 24 * 3600.0


@pytest.fixture(scope="module")
def server_url() -> Iterator[str]:
    """A server of its own: tables of other tests name manifests that are not there, which refuses every search."""
    with icetower_catalog() as url:
        yield url


@pytest.fixture
def empty(catalog: RemoteCatalog, table: str) -> str:
    """A table without snapshots."""
    namespace = table.rpartition(".")[0]
    identifier = TableIdentifier(Namespace((namespace,)), "empty")
    schema = catalog.tables.load(identifier_of(table)).metadata["schemas"][0]
    catalog.tables.drop(identifier_of(table))
    catalog.tables.create(identifier, schema)
    return f"{namespace}.empty"


@pytest.fixture
def orphan(catalog: RemoteCatalog, empty: str) -> Path:
    """An old file that nothing reaches, in the folder of a table without snapshots."""
    location = catalog.tables.load(identifier_of(empty)).metadata["location"]
    path = Path(location.removeprefix("file://")) / "data" / "left.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"left")
    then = path.stat().st_mtime - TEN_DAYS_S
    os.utime(path, (then, then))
    return path


def identifier_of(table: str) -> TableIdentifier:
    namespace, _, name = table.rpartition(".")
    return TableIdentifier(Namespace((namespace,)), name)


def test_dry_run_shows_what_would_go_and_stops(icetower: Icetower, empty: str, orphan: Path) -> None:
    shown = icetower("table", "orphans", empty, "--dry-run")

    assert shown.status == 0
    assert "1  4 bytes" in shown.out
    assert orphan.name in shown.out
    assert icetower("table", "orphans", empty, "--runs", "--json").json == []


def test_without_orphans_it_says_so(icetower: Icetower, empty: str) -> None:
    assert "has no orphans" in icetower("table", "orphans", empty, "--dry-run").err
    assert "has no orphans" in icetower("table", "orphans", empty, "--yes").err


def test_marked_files_are_shown_with_what_became_of_them(
    icetower: Icetower, empty: str, orphan: Path
) -> None:
    done = icetower("table", "orphans", empty, "--yes", "--grace", "1h")
    runs = icetower("table", "orphans", empty, "--runs")

    assert (done.status, runs.status) == (0, 0)
    assert "Marked 1 file of table" in done.out
    assert "queued, deleted after" in runs.out
    assert orphan.exists()
    again = icetower("table", "orphans", empty, "--yes")
    assert again.status == 1
    assert "others are marked and wait" in again.err


def test_without_a_terminal_nothing_is_marked_unasked(icetower: Icetower, empty: str, orphan: Path) -> None:
    refused = icetower("table", "orphans", empty)

    assert refused.status != 0
    assert orphan.exists()
    assert icetower("table", "orphans", empty, "--runs", "--json").json == []


def test_json_is_the_servers_answer(icetower: Icetower, empty: str, orphan: Path) -> None:
    shown = json.loads(icetower("table", "orphans", empty, "--dry-run", "--json", "--older-than", "7d").out)

    assert shown["dry-run"] is True
    assert [Path(file["location"]).name for file in shown["sample"]] == [orphan.name]


def test_a_table_whose_manifests_are_missing_is_refused(
    icetower: Icetower, catalog: RemoteCatalog, table: str
) -> None:
    refused = icetower("table", "orphans", table, "--dry-run")
    catalog.tables.drop(identifier_of(table))

    assert refused.status == 1
    assert "it is not known what table" in refused.err
