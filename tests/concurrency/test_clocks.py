"""Two servers on one Postgres whose clocks are days apart: the database's time counts for both."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from app.fileio.locations import local_path
from tests.builders.databases import migrated_database_of
from tests.builders.http_catalog import make_namespace, make_table, set_properties
from tests.e2e.patience import wait_until
from tests.servers.icetower import icetower_process
from tests.servers.postgres import PostgresServer

pytestmark = [pytest.mark.slow, pytest.mark.postgres]
TABLES = "/v1/namespaces/ns/tables"
NEVER, AT_ONCE = "3600", "0.1"
Start = Callable[[int, str], httpx.Client]


@pytest.fixture
def start(tmp_path: Path, postgres_server: PostgresServer) -> Iterator[Start]:
    """Start servers of one catalog: so many days ahead, keeping house so often."""
    settings = {
        "database_url": postgres_server.url(migrated_database_of(postgres_server)),
        "default_warehouse_location": str(tmp_path / "warehouse"),
    }
    with ExitStack() as running:

        def start(days: int, interval: str) -> httpx.Client:
            folder = tmp_path / f"{days}"
            folder.mkdir()
            more = {**settings, "file_deletion_interval_seconds": interval}
            url = running.enter_context(icetower_process(folder, days_ahead=str(days), **more))
            return running.enter_context(httpx.Client(base_url=url, timeout=60))

        yield start


def keep_house(wrong: httpx.Client) -> None:
    """Return when the server has done whatever its time says is due."""
    location = make_table(wrong, "ns", "purged")["metadata-location"]
    assert wrong.delete(f"{TABLES}/purged?purgeRequested=true").status_code == 204
    wait_until(lambda: not Path(local_path(location)).exists())


APART = pytest.mark.parametrize("days", [9, pytest.param(-9, marks=pytest.mark.nightly)])


@APART
def test_only_the_clock_of_the_database_counts(start: Start, days: int) -> None:
    right = start(0, NEVER)
    make_namespace(right, "ns")
    key = {"Idempotency-Key": "key"}
    body = {"name": "kept", "schema": make_table(right, "ns", "t")["metadata"]["schemas"][0]}
    created = right.post(TABLES, json=body, headers=key)
    make_table(right, "ns", "dropped")
    assert right.delete(f"{TABLES}/dropped").status_code == 204
    refused = right.post(f"{TABLES}/nope", json=set_properties(a="b"))

    wrong = start(days, AT_ONCE)  # It has its first look for what is over when it starts.
    keep_house(wrong)

    for each in (right, wrong):
        replayed = each.post(TABLES, json=body, headers=key)
        assert (replayed.status_code, replayed.json()) == (200, created.json())
        receipt = each.get(f"/v1/commits/{refused.headers['x-icetower-commit-id']}")
        assert receipt.json()["outcome"] == "failed"
        assert [entry["name"] for entry in each.get("/v1/dropped").json()["dropped"]] == ["dropped"]
    assert wrong.post("/v1/undrop", json={"namespace": ["ns"], "name": "dropped"}).status_code == 200


@APART
def test_the_past_is_one_line(start: Start, days: int) -> None:
    right, wrong = start(0, NEVER), start(days, NEVER)
    make_namespace(right, "ns")
    make_table(right, "ns", "t")
    moments = []
    for number, each in enumerate((right, wrong, right, wrong)):
        assert each.post(f"{TABLES}/t", json=set_properties(n=str(number))).status_code == 200
        moments.append(each.get(f"{TABLES}/t/history").json()["events"][0]["at-ms"])

    assert all(abs(moment - time.time() * 1000) < 3_600_000 for moment in moments)
    for each in (right, wrong):
        for number, moment in enumerate(moments):
            then = each.get(f"/v1/default@{moment}/namespaces/ns/tables/t").json()["metadata"]
            assert then["properties"]["n"] == str(number)
