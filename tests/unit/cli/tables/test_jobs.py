"""`icetower table jobs`, and the job of a commit in `icetower table history`, against a real server."""

from __future__ import annotations

import pytest

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from tests.unit.cli.conftest import SCHEMA, Icetower


@pytest.fixture
def table(catalog: RemoteCatalog, namespace: str) -> TableIdentifier:
    identifier = TableIdentifier(Namespace((namespace,)), "kept")
    catalog.tables.create(identifier, SCHEMA)
    return identifier


def test_jobs_are_shown_with_what_came_of_them(
    icetower: Icetower, catalog: RemoteCatalog, table: TableIdentifier
) -> None:
    none = icetower("table", "jobs", str(table))
    icetower("maintain", str(table), "--jobs", "remove-orphan-files")
    catalog.maintenance.begin_job(table, "expire-snapshots", "d" * 32, {}, 60_000)
    catalog.maintenance.end_job(table, "d" * 32, "failed", {"message": "The disk is full.", "seconds": 2})

    shown = icetower("table", "jobs", str(table))
    newest = icetower("table", "jobs", str(table), "--last", "1", "--json").json

    assert f"No job was ever done to table {table}" in none.err
    failed, orphans = shown.out.splitlines()[2:]
    assert "expire-snapshots      failed    2 " in failed
    assert "The disk is full." in failed
    assert "remove-orphan-files   nothing" in orphans
    assert [job["id"] for job in newest] == ["d" * 32]


def test_history_names_the_job_of_a_commit(
    icetower: Icetower, server_url: str, catalog: RemoteCatalog, table: TableIdentifier
) -> None:
    with RemoteCatalog(server_url, job="e" * 32) as of_job:
        of_job.tables.commit(table, [{"action": "set-properties", "updates": {"a": "1"}}])

    *_, committed, created = icetower("table", "history", str(table)).out.splitlines()

    assert "e" * 32 in committed
    assert "created" in created


def test_health_says_when_upkeep_has_changed_something(
    icetower: Icetower, catalog: RemoteCatalog, table: TableIdentifier
) -> None:
    before = icetower("table", "health", str(table))
    catalog.maintenance.begin_job(table, "rewrite-manifests", "f" * 32, {}, 60_000)
    ended = catalog.maintenance.end_job(table, "f" * 32, "done", {})

    after = icetower("table", "health", str(table), "--json").json

    assert any(line.split() == ["last", "upkeep", "none"] for line in before.out.splitlines())
    assert after["activity"]["last-upkeep-ms"] == ended["ended-ms"]
