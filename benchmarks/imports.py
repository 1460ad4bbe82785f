"""What importing tables costs: a SQL catalog of many small tables, checked, registered and let go there."""

from __future__ import annotations

import json
import os
import sqlite3
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.moving.mover import Mover
from app.moving.reports import MoveReport, MoveState
from app.moving.runs import chosen_entries, run_moves
from app.moving.sql_source import SqlSource
from app.moving.targets import MoveTarget
from app.moving.terms import Mode, Terms
from benchmarks.report import Row, rate
from tests.servers.icetower import icetower_process

TABLES: Final = int(os.environ.get("IMPORT_TABLES", "10000"))
WORKERS: Final = 4
_ROWS: Final = """
CREATE TABLE iceberg_tables (catalog_name, table_namespace, table_name, metadata_location,
    previous_metadata_location, PRIMARY KEY (catalog_name, table_namespace, table_name));
"""


def measure(folder: Path, database_url: str) -> list[Row]:
    """Measure imports into a server on each database, beside registrations of such files alone."""
    rows = []
    for name, settings in (("SQLite", {}), ("Postgres", {"database_url": database_url})):
        home = folder / f"imports-{name}"
        home.mkdir()
        with icetower_process(home, log_level="error", **settings) as uri:
            registered_s = _register_all(uri, list(_made(home, "plain", TABLES // 10))) * 10
            imported_s, again_s = _import_all(home, uri)
        beside = f"registrations alone, {WORKERS} at once: {rate(TABLES / registered_s)}"
        rows += [
            Row(
                f"import of {TABLES:,} tables, {name}",
                f"{imported_s:.0f} s, {rate(TABLES / imported_s)}",
                beside,
                f"{imported_s / registered_s:.1f}",
                "≤ 5",
            ),
            Row(
                f"the same again: nothing to do, {name}",
                f"{again_s:.1f} s",
                "the import",
                f"{again_s / imported_s:.2f}",
                "≤ 0.5",
            ),
        ]
    return rows


def _made(home: Path, kind: str, count: int) -> Iterator[tuple[str, str]]:
    """Yield names and locations of metadata files that are written one by one."""
    for number in range(count):
        place = home / "warehouse" / kind / f"t{number:06}"
        (place / "metadata").mkdir(parents=True)
        path = place / "metadata" / "00000-a.metadata.json"
        path.write_text(json.dumps(_metadata(f"file://{place}")))
        yield f"t{number:06}", f"file://{path}"


def _metadata(location: str) -> dict[str, Any]:
    columns = [{"id": 1, "name": "id", "required": False, "type": "long"}]
    return {
        "format-version": 2,
        "table-uuid": str(uuid.uuid4()),
        "location": location,
        "last-sequence-number": 0,
        "last-updated-ms": 1_700_000_000_000,
        "last-column-id": 1,
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": columns}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {},
    }


def _register_all(uri: str, files: list[tuple[str, str]]) -> float:
    namespace = Namespace(("plain",))
    with RemoteCatalog(uri) as catalog, ThreadPoolExecutor(WORKERS) as pool:
        catalog.namespaces.create(namespace)
        started = time.perf_counter()
        list(
            pool.map(
                lambda file: catalog.tables.register(TableIdentifier(namespace, file[0]), file[1]), files
            )
        )
        return time.perf_counter() - started


def _import_all(home: Path, uri: str) -> tuple[float, float]:
    """Return the seconds of an import that drops nothing, and of the same one again."""
    with closing(sqlite3.connect(home / "old.db")) as old:
        old.executescript(_ROWS)
        rows = (("old", "lake", name, where, None) for name, where in _made(home, "lake", TABLES))
        old.executemany("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, ?)", rows)
        old.commit()
    seconds = []
    for state in (MoveState.DONE, MoveState.KEPT):
        terms = Terms(Mode.FENCE)
        with closing(SqlSource(f"sqlite:///{home / 'old.db'}")) as source, RemoteCatalog(uri) as target:
            started = time.perf_counter()
            report = MoveReport(home / "report.ndjson", source.name, uri)
            mover = Mover(source, MoveTarget(target), terms, report)
            entries = chosen_entries(source, terms, report)
            summary = run_moves(source, target, mover, terms, entries, workers=WORKERS)
            seconds.append(time.perf_counter() - started)
        assert summary.states == {state: TABLES}, summary.wrong[:3]
    return seconds[0], seconds[1]
