"""Rebuilding a catalog: ten thousand tables found by their files alone, and found again when nothing is to be done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from benchmarks.report import Row, rate

TABLES = 10_000
VERSIONS = 5
A_NAMESPACE = 100


def measure(folder: Path, tables: int = TABLES) -> list[Row]:
    """Measure a rebuild on SQLite, and the dry run after it."""
    home = folder / "rebuild"
    root = home / "lake"
    root.mkdir(parents=True)
    for number in range(tables):
        _write_table(root, number)
    first, peak_mib = _run(home, root, "--yes")
    again, _ = _run(home, root, "--dry-run")
    summary = first[1]
    assert summary["done"] == tables, summary
    assert again[1]["keep"] == tables, again[1]
    what = f"{tables:,} tables with {VERSIONS} metadata files each, a local folder"
    return [
        Row(
            f"{what}: rebuilt", f"{first[0]:.1f} s", f"{peak_mib:.0f} MiB", rate(tables / first[0]), "minutes"
        ),
        Row(f"{what}: once more", f"{again[0]:.1f} s", "nothing to do", rate(tables / again[0]), "minutes"),
    ]


def _run(home: Path, root: Path, option: str) -> tuple[tuple[float, dict[str, Any]], float]:
    """Run the command, and return its seconds, its summary, and its peak memory in MiB."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ICETOWER_")}
    environment |= {
        "ICETOWER_DATABASE_URL": f"sqlite:///{home}/icetower.db",
        "ICETOWER_DEFAULT_WAREHOUSE_LOCATION": f"file://{root}",
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }
    # Not `ru_maxrss`: that is at least what this process had when it started the other one.
    code = (
        "import re, sys\nfrom app.cli.main import run\ntry:\n    run()\nfinally:\n"
        "    print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1], file=sys.stderr)"
    )
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, "rebuild", "--json", option],
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - began
    assert done.returncode == 0, done.stderr[-3000:]
    summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])["summary"]
    return (seconds, summary), int(done.stderr.split()[-1]) / 1024


def _write_table(root: Path, number: int) -> None:
    """Write the metadata files of one table, each naming those before it."""
    table_uuid = str(uuid.uuid4())
    location = f"{root}/space_{number // A_NAMESPACE:03}/table_{number:05}-{table_uuid[:8]}"
    folder = Path(location) / "metadata"
    folder.mkdir(parents=True)
    log: list[dict[str, Any]] = []
    for version in range(VERSIONS):
        path = folder / f"{version:05}-{uuid.uuid4()}.metadata.json"
        path.write_text(json.dumps(_metadata(f"file://{location}", table_uuid, version, log)))
        log.append({"timestamp-ms": 1_700_000_000_000 + version, "metadata-file": f"file://{path}"})


def _metadata(location: str, table_uuid: str, version: int, log: list[dict[str, Any]]) -> dict[str, Any]:
    fields = [
        {"id": number, "name": f"column_{number}", "required": False, "type": "string"}
        for number in range(1, 21)
    ]
    return {
        "format-version": 2,
        "table-uuid": table_uuid,
        "location": location,
        "last-sequence-number": version,
        "last-updated-ms": 1_700_000_000_000 + version,
        "last-column-id": 20,
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {},
        "metadata-log": list(log),
    }
