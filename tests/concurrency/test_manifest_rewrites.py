"""Manifests are rewritten beside clients that append and delete: no row is lost, and nobody fails."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException

from tests.builders.parquet_files import parquet_rows
from tests.concurrency.writers import at_once, load, make_tables

pytestmark = pytest.mark.slow
APPENDERS = 4
TURNS = 12
PATH = "/v1/namespaces/ns/tables/t"


def test_rewrites_beside_appends_and_deletes_lose_no_row(servers: list[str]) -> None:
    make_tables(servers[0], "t")
    location = load(servers[0], "t")["location"]
    folder = Path(location.removeprefix("file://"), "data")
    folder.mkdir()
    for number in range(APPENDERS * TURNS):
        (folder / f"{number}.parquet").write_bytes(parquet_rows(id=[number]))
    busy = threading.Semaphore(0)
    clients = [httpx.Client(base_url=servers[number % 2], timeout=60) for number in range(APPENDERS + 2)]
    rewritten: list[int] = []
    deleted: list[int] = []

    def append(number: int) -> None:
        for turn in range(TURNS):
            file = {"file-path": f"{location}/data/{number * TURNS + turn}.parquet"}
            answer = clients[number].post(f"{PATH}/append", json={"files": [file]})
            assert answer.status_code == 200, answer.text
        busy.release()

    def delete() -> None:
        catalog = load_catalog("t", type="rest", uri=servers[1])
        # What is appended first is deleted while others append.
        for row in (0, TURNS, 2 * TURNS):
            while True:
                table = catalog.load_table("ns.t")
                if table.current_snapshot() is None or row not in table.scan().to_arrow()["id"].to_pylist():
                    continue
                try:
                    table.delete(f"id = {row}")
                except CommitFailedException:
                    continue  # An append came first, which is for a client to try again.
                deleted.append(row)
                break
        busy.release()

    def rewrite() -> None:
        left = APPENDERS + 1
        while left:
            answer = clients[-1].post(f"{PATH}/rewrite-manifests", json={"all": True})
            assert answer.status_code == 200, answer.text
            rewritten.append(answer.json()["manifests-replaced"])
            while left and busy.acquire(blocking=False):
                left -= 1

    def work(number: int) -> None:
        if number < APPENDERS:
            append(number)
        elif number == APPENDERS:
            delete()
        else:
            rewrite()

    at_once(APPENDERS + 2, work)

    table = load_catalog("t", type="rest", uri=servers[0]).load_table("ns.t")
    rows = sorted(table.scan().to_arrow()["id"].to_pylist())
    assert rows == [row for row in range(APPENDERS * TURNS) if row not in deleted]
    assert len(deleted) == 3
    assert any(rewritten)
