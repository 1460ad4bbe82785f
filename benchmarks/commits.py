"""Commits over many tables, against a plain script that does what a commit must do on disk."""

from __future__ import annotations

import json
import os
import sqlite3
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import psycopg

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
  local headers = {["Content-Type"]="application/json"}
  if thread_id then
    headers["Idempotency-Key"] = string.format("%%08x-%%04x-7000-8000-%%012x", os.time(), thread_id, n)
  end
  return wrk.format("POST", "/v1/namespaces/bench/tables/t" .. (n %% %d), headers, body)
end
"""
"""A commit to each of so many tables in turn."""
KEYS = """
local threads = 0
function setup(thread)
  threads = threads + 1
  thread:set("thread_id", threads)
end
"""
"""With it each commit has an Idempotency-Key, as those of Iceberg's Java client have from 1.11 on."""


def measure(folder: Path, database: Callable[[], str]) -> list[Row]:
    """Measure set-properties commits on both databases; the script writes to SQLite, alone and by 16 threads.

    Args:
        folder: for files.
        database: gives the URL of an empty Postgres database.
    """
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "commit.lua"
    script.write_text(COMMIT % TABLES)
    keyed = folder / "keyed.lua"
    keyed.write_text(KEYS + COMMIT % TABLES)
    rows: list[Row] = []
    for name, settings in _set_ups(database).items():
        with icetower(folder / f"commits-{name}".replace(" ", "-"), **settings) as server:
            http = client(server.url)
            paths = [make_table(http, f"t{number}") for number in range(TABLES)]
            content = http.get(paths[-1], headers={"accept-encoding": "identity"}).content
            scripts = {
                "plain script": plain_script(folder / f"plain-1-{name}", content, 1),
                f"the script in {CLIENTS} threads": plain_script(
                    folder / f"plain-16-{name}", content, CLIENTS
                ),
            }
            if "database_url" in settings:
                scripts[f"the script in {CLIENTS} threads on Postgres"] = plain_script(
                    folder / f"plain-pg-{name}", content, CLIENTS, database()
                )
            commits = wrk(server.url, connections=CLIENTS, seconds=SECONDS, script=str(script))
            with_keys = wrk(server.url, connections=CLIENTS, seconds=SECONDS, script=str(keyed))
        what = f"set-properties over {TABLES} tables, {CLIENTS} clients, {name}"
        aim = "≥ 0.35" if "database_url" in settings else "≥ 0.40"
        for beside, found in scripts.items():
            rows.append(Row(what, rate(commits), f"{beside} {rate(found)}", f"{commits / found:.2f}", aim))
        beside = f"without {rate(commits)}"
        rows.append(
            Row(f"{what}, Idempotency-Keys", rate(with_keys), beside, f"{with_keys / commits:.2f}", "–")
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
        "Postgres, two processes, pinned": {"database_url": database(), **two, "pin_workers": "true"},
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


def plain_script(folder: Path, content: bytes, threads: int, postgres_url: str | None = None) -> float:
    """Return how often a second a script writes and fsyncs the JSON and durably updates one row.

    Args:
        folder: for the files, and for the row in SQLite.
        content: the JSON.
        threads: how many do that side by side, each with a connection of its own.
        postgres_url: an empty database, if the row is to be in Postgres.
    """
    folder.mkdir(parents=True, exist_ok=True)
    connect = partial(_Postgres, postgres_url) if postgres_url else partial(_SQLite, folder / "plain.db")
    with closing(connect()) as setup:
        setup.fill()
    deadline = time.perf_counter() + SECONDS

    def work(thread: int) -> int:
        # Each begins at another row: in Postgres, threads in step would wait for each other's locks.
        first, done = thread * TABLES // threads, 0
        with closing(connect()) as rows:
            while time.perf_counter() < deadline:
                path = folder / f"{uuid.uuid4()}.metadata.json"
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                os.write(descriptor, content)
                os.fsync(descriptor)
                os.close(descriptor)
                rows.update((first + done) % TABLES, str(path))
                done += 1
        return done

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(work, range(threads))) / SECONDS


_TABLE = "CREATE TABLE pointers (id INTEGER PRIMARY KEY, location TEXT)"


class _SQLite:
    """One connection to a SQLite database with a row for each table."""

    def __init__(self, file: Path) -> None:
        self._connection = sqlite3.connect(file, isolation_level=None, timeout=60)
        self._connection.execute("PRAGMA synchronous = FULL")
        self.close = self._connection.close

    def fill(self) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(_TABLE)
        self._connection.executemany("INSERT INTO pointers VALUES (?, '')", [(n,) for n in range(TABLES)])

    def update(self, number: int, location: str) -> None:
        """Move one row in a transaction of its own."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute("UPDATE pointers SET location = ? WHERE id = ?", (location, number))
        self._connection.execute("COMMIT")


class _Postgres:
    """The same in Postgres."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self.close = self._connection.close

    def fill(self) -> None:
        self._connection.execute(_TABLE)
        for number in range(TABLES):
            self._connection.execute("INSERT INTO pointers VALUES (%s, '')", (number,))

    def update(self, number: int, location: str) -> None:
        """Move one row in a transaction of its own."""
        self._connection.execute("UPDATE pointers SET location = %s WHERE id = %s", (location, number))
