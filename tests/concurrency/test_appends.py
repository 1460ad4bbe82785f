"""Sixty-four clients append by reference to one table of two servers: nothing lost, nothing twice, bad ones alone."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyiceberg.catalog import load_catalog

from tests.builders.parquet_files import parquet_rows
from tests.concurrency.writers import at_once, load, make_tables

pytestmark = pytest.mark.slow
CLIENTS = 64
ROUNDS = 3


def test_all_good_appends_land_once_and_bad_ones_fail_alone(servers: list[str]) -> None:
    make_tables(servers[0], "t")
    location = load(servers[0], "t")["location"]
    folder = Path(location.removeprefix("file://"), "data")
    folder.mkdir()
    for number in range(CLIENTS * ROUNDS):
        (folder / f"{number}.parquet").write_bytes(parquet_rows(id=[number]))
    # One of them sends what another one sends too, one sends nonsense, the others files of their own.
    duplicate, nonsense = 7, 13
    (folder / "nonsense.parquet").write_bytes(b"nothing")
    clients = [httpx.Client(base_url=servers[number % 2], timeout=60) for number in range(CLIENTS)]

    def work(number: int) -> list[tuple[str, int, Any]]:
        answers = []
        for turn in range(ROUNDS):
            name = f"{(0 if number == duplicate else number) * ROUNDS + turn}.parquet"
            if number == nonsense:
                name = "nonsense.parquet"
            answer = clients[number].post(
                "/v1/namespaces/ns/tables/t/append",
                json={"files": [{"file-path": f"{location}/data/{name}"}]},
            )
            answers.append((name, answer.status_code, answer.json()))
        return answers

    answers = [answer for per_client in at_once(CLIENTS, work) for answer in per_client]

    by_status: dict[int, Counter[str]] = {}
    for name, status, _ in answers:
        by_status.setdefault(status, Counter())[name] += 1
    assert by_status[400] == {"nonsense.parquet": ROUNDS}
    assert by_status[409] == {f"{turn}.parquet": 1 for turn in range(ROUNDS)}
    assert set(by_status) == {200, 400, 409}
    table = load_catalog("t", type="rest", uri=servers[1]).load_table("ns.t")
    rows = table.scan().to_arrow()["id"].to_pylist()
    assert Counter(rows) == {int(name.split(".")[0]): 1 for name in by_status[200]}
    assert len(rows) == (CLIENTS - 2) * ROUNDS
    snapshots = {snapshot.snapshot_id for snapshot in table.metadata.snapshots}
    assert {body["snapshot-id"] for _, status, body in answers if status == 200} == snapshots
    assert len(snapshots) < len(rows)


def test_appends_and_commits_of_clients_mix(servers: list[str]) -> None:
    make_tables(servers[0], "t")
    location = load(servers[0], "t")["location"]
    folder = Path(location.removeprefix("file://"), "data")
    folder.mkdir()
    clients = [httpx.Client(base_url=servers[number % 2], timeout=60) for number in range(8)]
    done = threading.Event()

    def work(number: int) -> None:
        if number == 0:
            for commit in range(20):
                updates = [{"action": "set-properties", "updates": {f"p{commit}": "x"}}]
                body = {"requirements": [], "updates": updates}
                assert clients[0].post("/v1/namespaces/ns/tables/t", json=body).status_code == 200
            done.set()
            return
        for turn in range(5):
            name = f"{number}-{turn}.parquet"
            (folder / name).write_bytes(parquet_rows(id=[number]))
            body = {"files": [{"file-path": f"{location}/data/{name}"}]}
            assert clients[number].post("/v1/namespaces/ns/tables/t/append", json=body).status_code == 200

    at_once(8, work)

    metadata = load(servers[0], "t")
    assert done.is_set()
    assert {f"p{commit}" for commit in range(20)} <= metadata["properties"].keys()
    assert metadata["snapshots"][-1]["summary"]["total-data-files"] == "35"
