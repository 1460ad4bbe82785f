"""Health, readiness and metrics."""

from __future__ import annotations

import resource
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from app.database.schema.migrations import downgrade, migrate
from app.errors import FilesUnavailable
from app.fileio.memory import MemoryFiles
from app.main import open_database
from tests.builders.http_catalog import http_catalog, settings_in


def test_living_process_says_so(api: httpx.Client) -> None:
    assert api.get("/health").json() == {"status": "ok"}


def test_server_that_can_work_is_ready(api: httpx.Client) -> None:
    response = api.get("/ready")

    assert response.status_code == 200
    assert response.json() == {
        "status": "ok",
        "parts": {"database": {"ok": True}, "migrations": {"ok": True}, "warehouse": {"ok": True}},
    }


class FullDisk(MemoryFiles):
    """A disk on which one block is left."""

    def write_new(self, location: str, content: bytes) -> None:
        if len(content) > 4_096:
            raise FilesUnavailable("the disk is full")


def test_server_whose_warehouse_cannot_be_written_is_not_ready(tmp_path: Path) -> None:
    with http_catalog(tmp_path, files_of=lambda _warehouse: FullDisk()) as api:
        response = api.get("/ready")

    assert response.status_code == 503
    assert response.json()["status"] == "unavailable"
    assert response.json()["parts"]["warehouse"] == {"ok": False, "why": "the disk is full"}
    assert response.json()["parts"]["database"] == {"ok": True}


def test_server_whose_database_takes_no_changes_is_not_ready(tmp_path: Path) -> None:
    files = MemoryFiles()
    with http_catalog(tmp_path, files_of=lambda _warehouse: files) as api:
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        # What a disk looks like that takes no more of the database's log.
        full = (tmp_path / "icetower.db-wal").stat().st_size + 100
        resource.setrlimit(resource.RLIMIT_FSIZE, (full, limit[1]))
        try:
            response = api.get("/ready")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        assert api.get("/ready").status_code == 200

    parts = response.json()["parts"]
    assert response.status_code == 503
    assert parts["database"]["why"]
    assert parts["warehouse"] == {"ok": True}


def test_server_whose_database_was_changed_under_it_is_not_ready(tmp_path: Path) -> None:
    with http_catalog(tmp_path) as api:
        with closing(open_database(settings_in(tmp_path))) as database:
            downgrade(database, "base")
        response = api.get("/ready")

    parts = response.json()["parts"]
    assert response.status_code == 503
    assert not parts["database"]["ok"]
    assert "icetower migrate" in parts["migrations"]["why"]


def test_server_that_was_left_running_through_a_migration_takes_no_changes(tmp_path: Path) -> None:
    with http_catalog(tmp_path) as api:
        with closing(open_database(settings_in(tmp_path))) as database:
            downgrade(database, "-1")
            refused = api.post("/v1/namespaces", json={"namespace": ["late"]})
            listed = api.get("/v1/namespaces")
            migrate(database)
        taken = api.post("/v1/namespaces", json={"namespace": ["late"]})

    assert refused.status_code == 503
    assert "it was migrated. Nothing was changed" in refused.json()["error"]["message"]
    assert listed.json()["namespaces"] == []
    assert taken.status_code == 200


def test_server_without_its_default_warehouse_is_not_ready(tmp_path: Path) -> None:
    with http_catalog(tmp_path) as api:
        api.delete("/management/v1/warehouses/default")
        response = api.get("/ready")

    assert response.status_code == 503
    assert response.json()["parts"]["warehouse"] == {"ok": False, "why": "Warehouse does not exist: default"}


@pytest.mark.parametrize("series", ["icetower_requests_total", "icetower_request_duration_seconds_bucket"])
def test_metrics_hold_what_was_counted(api: httpx.Client, series: str) -> None:
    api.get("/v1/config")

    response = api.get("/metrics")

    assert response.headers["content-type"].startswith("text/plain; version=")
    assert f"{series}{{" in response.text
    assert 'route="/v1/config"' in response.text
