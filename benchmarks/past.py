"""Listing 100,000 tables as they were, over a history of 1,000,000 events, beside listing them as they are."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import create_engine, insert, select

from app.database.schema.rows import namespace_versions, pointer_history, pointer_names, pointers, warehouses
from benchmarks.listings import PAGE, TABLES, fill_names
from benchmarks.report import Row
from benchmarks.servers import icetower

EVENTS_EACH = 10
ROUNDS = 5
STRETCH = 10_000
HOUR_MS = 3_600_000


def measure(folder: Path, postgres_url: str) -> list[Row]:
    """Measure whole listings and pages, now and as of a time, on both databases."""
    rows: list[Row] = []
    for name, url in (("SQLite", None), ("Postgres", postgres_url)):
        home = folder / f"past-{name}"
        settings = {} if url is None else {"database_url": url}
        with icetower(home, **settings) as server:
            database = url or f"sqlite:///{home / 'icetower.db'}"
            now_ms = time.time_ns() // 1_000_000
            fill_names(database)
            _fill_history(database, now_ms)
            http = httpx.Client(base_url=server.url, timeout=300)
            then = f"/v1/default@{now_ms - HOUR_MS}"
            for what, query in (("all at once", {}), (f"pages of {PAGE:,}", {"pageSize": str(PAGE)})):
                now_s, past_s = _both(http, "/v1/default", then, query)
                rows.append(
                    Row(
                        f"{TABLES:,} tables as of an hour ago, {TABLES * EVENTS_EACH:,} events, {what}, {name}",
                        f"{past_s * 1000:.0f} ms",
                        f"now {now_s * 1000:.0f} ms",
                        f"{past_s / now_s:.2f}",
                        "at most 2",
                    )
                )
    return rows


def _fill_history(url: str, now_ms: int) -> None:
    """Insert the history of the tables: each was made and has moved on since, the last times within the hour."""
    db = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with db.begin() as connection:
        warehouse_id = connection.execute(select(warehouses.c.id)).scalar_one()
        begin_ms = now_ms - EVENTS_EACH * HOUR_MS
        version = {"parent_key": "", "name": "full", "properties": "{}", "from_ms": begin_ms}
        connection.execute(insert(namespace_versions), [{"warehouse_id": warehouse_id, **version}])
        ids = connection.execute(select(pointers.c.id, pointers.c.name).order_by(pointers.c.name)).all()
        common: dict[str, Any] = {"warehouse_id": warehouse_id, "namespace_key": "full", "kind": "table"}
        for batch in _batches(
            {**common, "pointer_id": each.id, "name": each.name, "from_ms": begin_ms} for each in ids
        ):
            connection.execute(insert(pointer_names), batch)
        for batch in _batches(
            {
                **common,
                "pointer_id": each.id,
                "name": each.name,
                "event": "committed" if number else "created",
                "location": f"file:///nowhere/{each.id}/{number}.metadata.json",
                "uuid": str(each.id),
                "at_ms": begin_ms + number * HOUR_MS,
                "author": "anonymous",
                "request_id": "r",
            }
            for number in range(EVENTS_EACH)
            for each in ids
        ):
            connection.execute(insert(pointer_history), batch)
    if db.dialect.name == "postgresql":
        with db.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            # As autovacuum does in time.
            connection.exec_driver_sql("VACUUM ANALYZE")
    db.dispose()


def _batches(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == STRETCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _both(http: httpx.Client, now: str, then: str, query: dict[str, str]) -> tuple[float, float]:
    """Return the medians of listing all tables now and then, taken in turns; the first round only warms."""
    times: dict[str, list[float]] = {now: [], then: []}
    for _ in range(ROUNDS + 1):
        for prefix, taken in times.items():
            taken.append(_list(http, prefix, query))
    return statistics.median(times[now][1:]), statistics.median(times[then][1:])


def _list(http: httpx.Client, prefix: str, query: dict[str, str]) -> float:
    started, count, token = time.perf_counter(), 0, ""
    while True:
        answer = http.get(
            f"{prefix}/namespaces/full/tables", params={**query, **({"pageToken": token} if token else {})}
        )
        answer.raise_for_status()
        found = answer.json()
        count += len(found["identifiers"])
        token = found.get("next-page-token", "")
        if not token:
            break
    assert count == TABLES, count
    return time.perf_counter() - started
