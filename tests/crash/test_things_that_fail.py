"""The database, the disk or the object store fails and comes back: told clearly, nothing lost, no restart needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.databases import migrated
from tests.crash.crashes import Client, CrashingServer, check_table
from tests.servers.postgres import PostgresServer
from tests.servers.s3 import S3Server

pytestmark = pytest.mark.slow


@pytest.mark.postgres
def test_database_that_is_gone_and_comes_back(tmp_path: Path, own_postgres_server: PostgresServer) -> None:
    url = migrated(own_postgres_server.url(own_postgres_server.create_database()))
    with CrashingServer(tmp_path, {"database_url": url}) as server:
        client = Client(server.url)
        client.make_table("t")
        assert client.commit("t", "mark-1").status_code == 200
        files = set((tmp_path / "warehouse").rglob("*.json"))

        own_postgres_server.kill()
        loads = client.http.get("/v1/namespaces/ns/tables/t")
        commits = client.commit("t", "mark-2")
        ready, alive = client.http.get("/ready"), client.http.get("/health")

        assert (loads.status_code, loads.json()["error"]["type"]) == (503, "ServiceUnavailableException")
        assert commits.status_code == 503
        assert (ready.status_code, alive.status_code) == (503, 200)
        assert set((tmp_path / "warehouse").rglob("*.json")) == files

        own_postgres_server.start()
        server.wait_until_ready()
        check_table(client.load("t"), {"mark-1"}, {"mark-1"})
        assert client.commit("t", "mark-3").status_code == 200


def test_disk_that_takes_no_large_file_refuses_the_commit_and_changes_nothing(tmp_path: Path) -> None:
    # A limit on the size of files is what a full disk looks like to the one file that does not fit.
    with CrashingServer(tmp_path, max_file_bytes=4 << 20) as server:
        client = Client(server.url)
        client.make_table("t")
        assert client.commit("t", "mark-1").status_code == 200
        files = set((tmp_path / "warehouse").rglob("*.json"))

        refused = client.commit("t", "mark-large", "x" * (5 << 20))

        assert refused.status_code == 503, refused.text
        assert set((tmp_path / "warehouse").rglob("*.json")) == files
        check_table(client.load("t"), {"mark-1"}, {"mark-1"})
        assert client.commit("t", "mark-2").status_code == 200


@pytest.mark.s3
def test_object_store_that_hangs_and_comes_back(tmp_path: Path) -> None:
    with S3Server() as store:
        store.create_bucket("lake")
        with CrashingServer(tmp_path) as server:
            client = Client(server.url)
            made = client.http.post(
                "/management/v1/warehouses",
                json={"name": "lake", "root-location": "s3://lake/tables", "storage": store.storage},
            )
            assert made.status_code == 200, made.text
            client.make_table("t", "/v1/lake")
            assert client.commit("t", "mark-1", prefix="/v1/lake").status_code == 200

            with store.frozen():
                refused = client.commit("t", "mark-2", prefix="/v1/lake")

            assert refused.status_code == 503, refused.text
            assert store.secret_key not in refused.text

            landed = client.commit("t", "mark-3", prefix="/v1/lake")
            assert landed.status_code == 200, landed.text
            properties = client.load("t", "/v1/lake")["metadata"]["properties"]
            assert {name for name in properties if name.startswith("mark")} == {"mark-1", "mark-3"}
