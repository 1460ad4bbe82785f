"""Commits over many tables, against a plain script that does what a commit must do on disk."""

from __future__ import annotations

import json
import os
import sqlite3
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.report import Row, rate
from benchmarks.servers import icetower, wrk
from benchmarks.tables import client, make_table
from tests.servers.s3 import S3Server

TABLES = 64
CLIENTS = 16
MANY_CLIENTS = 32
SECONDS = 6

COMMIT = """
local n = 0
request = function()
  n = n + 1
  local body = '{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"' .. n .. '"}}]}'
  return wrk.format("POST", "/v1/namespaces/bench/tables/t" .. (n %% %d), {["Content-Type"]="application/json"}, body)
end
"""
"""A commit to each of so many tables in turn."""


def measure(folder: Path, database: Callable[[], str]) -> list[Row]:
    """Measure set-properties commits on both databases; the script writes to SQLite, alone and by 16 threads.

    Args:
        folder: for files.
        database: gives the URL of an empty Postgres database.
    """
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "commit.lua"
    script.write_text(COMMIT % TABLES)
    rows: list[Row] = []
    for name, settings in _set_ups(database).items():
        with icetower(folder / f"commits-{name}".replace(" ", "-"), **settings) as server:
            http = client(server.url)
            paths = [make_table(http, f"t{number}") for number in range(TABLES)]
            content = http.get(paths[-1], headers={"accept-encoding": "identity"}).content
            alone = plain_script(folder / f"plain-1-{name}", content, 1)
            threads = plain_script(folder / f"plain-16-{name}", content, CLIENTS)
            commits = wrk(server.url, connections=CLIENTS, seconds=SECONDS, script=str(script))
        what = f"set-properties over {TABLES} tables, {CLIENTS} clients, {name}"
        for beside, found in (("plain script", alone), (f"the script in {CLIENTS} threads", threads)):
            rows.append(
                Row(what, rate(commits), f"{beside} {rate(found)}", f"{commits / found:.2f}", "≥ 0.40")
            )
    return [*rows, *_one_table(folder, database)]


def _set_ups(database: Callable[[], str]) -> dict[str, dict[str, str]]:
    two = {"workers": "2"}
    return {
        "SQLite": {},
        "SQLite, two processes": two,
        "SQLite, two processes, pinned": {**two, "pin_workers": "true"},
        "Postgres": {"database_url": database()},
        "Postgres, two processes": {"database_url": database(), **two},
    }


def _one_table(folder: Path, database: Callable[[], str]) -> list[Row]:
    """Measure commits without requirements to one table, by one client and by many."""
    script = folder / "commit-one.lua"
    script.write_text(COMMIT % 1)
    rows: list[Row] = []
    for name, settings in _set_ups(database).items():
        with icetower(folder / f"one-{name}".replace(" ", "-"), **settings) as server:
            make_table(client(server.url), "t0")
            rows.append(_many_beside_one(server.url, script, name))
    with S3Server() as store:
        store.create_bucket("bench")
        settings = {
            "default_warehouse_location": "s3://bench",
            "default_warehouse_storage": json.dumps(store.storage),
        }
        with icetower(folder / "one-s3", **settings) as server:
            make_table(client(server.url), "t0")
            rows.append(_many_beside_one(server.url, script, "SQLite and S3"))
    return rows


def _many_beside_one(url: str, script: Path, name: str) -> Row:
    alone = wrk(url, connections=1, seconds=SECONDS, script=str(script))
    many = wrk(url, connections=MANY_CLIENTS, seconds=SECONDS, script=str(script))
    what = f"set-properties to one table, {MANY_CLIENTS} clients, {name}"
    return Row(what, rate(many), f"1 client {rate(alone)}", f"{many / alone:.2f}", "≥ 1.00")


def plain_script(folder: Path, content: bytes, threads: int) -> float:
    """Return how often a second a script writes and fsyncs the JSON and durably updates one SQLite row."""
    folder.mkdir(parents=True, exist_ok=True)
    database = folder / "plain.db"
    with sqlite3.connect(database) as setup:
        setup.execute("PRAGMA journal_mode = WAL")
        setup.execute("CREATE TABLE pointers (id INTEGER PRIMARY KEY, location TEXT)")
        setup.executemany("INSERT INTO pointers VALUES (?, ?)", [(number, "") for number in range(TABLES)])
    deadline = time.perf_counter() + SECONDS

    def work(_: int) -> int:
        connection = sqlite3.connect(database, isolation_level=None, timeout=60)
        connection.execute("PRAGMA synchronous = FULL")
        done = 0
        while time.perf_counter() < deadline:
            path = folder / f"{uuid.uuid4()}.metadata.json"
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            os.write(descriptor, content)
            os.fsync(descriptor)
            os.close(descriptor)
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("UPDATE pointers SET location = ? WHERE id = ?", (str(path), done % TABLES))
            connection.execute("COMMIT")
            done += 1
        connection.close()
        return done

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(work, range(threads))) / SECONDS
