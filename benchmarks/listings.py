"""Pages of very long listings: any page costs what the first one costs."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import httpx
from sqlalchemy import create_engine, insert, select

from app.database.schema.rows import namespaces, pointers, warehouses
from benchmarks.report import Row
from benchmarks.servers import icetower

TABLES = 100_000
NAMESPACES = 10_000
PAGE = 1_000


def measure(folder: Path, postgres_url: str) -> list[Row]:
    """Measure the first and the last pages on both databases."""
    rows: list[Row] = []
    for name, url in (("SQLite", None), ("Postgres", postgres_url)):
        home = folder / f"listings-{name}"
        settings = {} if url is None else {"database_url": url}
        with icetower(home, **settings) as server:
            fill_names(url or f"sqlite:///{home / 'icetower.db'}")
            http = httpx.Client(base_url=server.url, timeout=300)
            for what, path, pages in (
                (f"{TABLES:,} tables in one namespace", "/v1/namespaces/full/tables", TABLES // PAGE),
                (f"{NAMESPACES:,} namespaces", "/v1/namespaces", NAMESPACES // PAGE),
            ):
                times = _pages(http, path, pages)
                first, last = statistics.median(times[:5]), statistics.median(times[-5:])
                rows.append(
                    Row(
                        f"{what}, a page of {PAGE:,}, {name}",
                        f"last pages {last:.1f} ms",
                        f"first pages {first:.1f} ms",
                        f"{last / first:.2f}",
                        "about 1",
                    )
                )
    return rows


def fill_names(url: str) -> None:
    """Insert rows as the catalog would: a hundred thousand commits would take the better part of an hour."""
    db = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with db.begin() as connection:
        warehouse_id = connection.execute(select(warehouses.c.id)).scalar_one()
        common = {"warehouse_id": warehouse_id, "properties": "{}", "created_ms": 0}
        names = ["full", *(f"namespace_{number:06}" for number in range(NAMESPACES - 1))]
        connection.execute(insert(namespaces), [{**common, "key": name, "name": name} for name in names])
        full = connection.execute(select(namespaces.c.id).where(namespaces.c.name == "full")).scalar_one()
        for start in range(0, TABLES, 10_000):
            connection.execute(
                insert(pointers),
                [
                    {
                        "namespace_id": full,
                        "kind": "table",
                        "name": f"table_{number:06}",
                        "uuid": f"{number}",
                        "metadata_location": f"file:///nowhere/{number}.metadata.json",
                        "created_ms": 0,
                        "updated_ms": 0,
                    }
                    for number in range(start, start + 10_000)
                ],
            )
    db.dispose()


def _pages(http: httpx.Client, path: str, pages: int) -> list[float]:
    times: list[float] = []
    for _ in range(2):  # the first round warms the database's cache
        times, token, count = [], "", 0
        while True:
            started = time.perf_counter()
            answer = http.get(path, params={"pageSize": str(PAGE), "pageToken": token})
            times.append((time.perf_counter() - started) * 1000)
            answer.raise_for_status()
            count += 1
            token = answer.json().get("next-page-token", "")
            if not token:
                break
        assert count in (pages, pages + 1), count
    return times
