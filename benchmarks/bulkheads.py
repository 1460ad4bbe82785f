"""A healthy warehouse beside one whose store does not answer, or a table whose row is locked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx
import psycopg

from benchmarks.report import Row, rate
from benchmarks.servers import icetower
from benchmarks.tables import client, make_table
from tests.builders.http_catalog import SCHEMA
from tests.servers.sick_s3 import Health, SickS3

CLIENTS = 8
CROWD = 24
SECONDS = 8.0
COMMIT = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}


def measure(folder: Path, postgres_url: str) -> list[Row]:
    """Measure commits and loads of 8 clients, alone and while 24 others wait for something that is sick."""
    rows = []
    sicknesses: tuple[Health, ...] = ("hangs", "trickles")
    for health in sicknesses:
        # Nothing is kept of the sick warehouse for long, so that its readers need its store.
        with icetower(folder / health, metadata_recheck_seconds="0") as server, SickS3().running() as store:
            paths = [make_table(client(server.url), f"t{number}") for number in range(CLIENTS)]
            path = _sick_table(server.url, store)
            alone = _load(server.url, paths)
            store.fall_ill(health)
            with _crowd(server.url, partial(_get, path)):
                beside = _load(server.url, paths)
                store.recover()
        rows += _rows(f"beside a store that {health}", alone, beside)
    with icetower(folder / "locked", database_url=postgres_url) as server:
        paths = [make_table(client(server.url), f"t{number}") for number in range(CLIENTS)]
        locked = make_table(client(server.url), "locked")
        alone = _load(server.url, paths)
        with psycopg.connect(postgres_url.replace("+psycopg", "")) as session:
            session.execute("SELECT * FROM pointers WHERE name = 'locked' FOR UPDATE")
            with _crowd(server.url, lambda http: http.post(locked, json=COMMIT)):
                beside = _load(server.url, paths)
                session.rollback()
    return [*rows, *_rows("beside a locked row of the same warehouse, Postgres", alone, beside)]


def _rows(what: str, alone: list[float], beside: list[float]) -> list[Row]:
    rates = [len(seconds) / SECONDS for seconds in (alone, beside)]
    slowest = [sorted(seconds)[round(len(seconds) * 0.99) - 1] * 1000 for seconds in (alone, beside)]
    what = f"{CLIENTS} clients load and commit {what}"
    return [
        Row(what, rate(rates[1]), f"alone {rate(rates[0])}", f"{rates[1] / rates[0]:.2f}", "≥ 0.80"),
        Row(
            "the same, 99 of 100 answered in",
            f"{slowest[1]:.1f} ms",
            f"alone {slowest[0]:.1f} ms",
            f"{slowest[1] / slowest[0]:.2f}",
            "≤ 2",
        ),
    ]


def _load(url: str, paths: list[str]) -> list[float]:
    """Return the seconds that each request of healthy clients took."""
    end = time.perf_counter() + SECONDS

    def work(path: str) -> list[float]:
        taken = list[float]()
        with httpx.Client(base_url=url, timeout=60) as http:
            while (started := time.perf_counter()) < end:
                answer = http.post(path, json=COMMIT) if len(taken) % 2 else http.get(path)
                answer.raise_for_status()
                taken.append(time.perf_counter() - started)
        return taken

    with ThreadPoolExecutor(len(paths)) as clients:
        return [seconds for taken in clients.map(work, paths) for seconds in taken]


@contextmanager
def _crowd(url: str, send: Callable[[httpx.Client], httpx.Response]) -> Iterator[None]:
    """Let many clients ask for what is sick until the block ends; each waits a second after a refusal."""
    is_over = threading.Event()

    def work() -> None:
        with httpx.Client(base_url=url, timeout=120) as http:
            while not is_over.is_set():
                if not send(http).is_success:
                    is_over.wait(1.0)

    with ThreadPoolExecutor(CROWD) as clients:
        for _ in range(CROWD):
            clients.submit(work)
        try:
            yield
        finally:
            is_over.set()


def _get(path: str, http: httpx.Client) -> httpx.Response:
    return http.get(path)


def _sick_table(url: str, store: SickS3) -> str:
    body = {"name": "sick", "root-location": "s3://sick/tables", "storage": store.storage}
    with httpx.Client(base_url=url) as http:
        http.post("/management/v1/warehouses", json=body).raise_for_status()
        http.post("/v1/sick/namespaces", json={"namespace": ["bench"]}).raise_for_status()
        tables = "/v1/sick/namespaces/bench/tables"
        http.post(tables, json={"name": "t", "schema": SCHEMA}).raise_for_status()
    return f"{tables}/t"
