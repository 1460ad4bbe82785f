"""Tables to measure with: made over HTTP, or with long histories by writing and registering metadata."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path
from typing import Any

import httpx

COLUMNS = [
    {"id": number, "name": f"column_{number}", "required": False, "type": "long"} for number in range(1, 11)
]
SCHEMA: dict[str, Any] = {"type": "struct", "schema-id": 0, "fields": COLUMNS}
NAMESPACE = "bench"


def client(url: str) -> httpx.Client:
    """Return an HTTP client with the namespace made."""
    http = httpx.Client(base_url=url, timeout=300)
    http.post("/v1/namespaces", json={"namespace": [NAMESPACE]})
    return http


def make_table(http: httpx.Client, name: str, **properties: str) -> str:
    """Create an empty table and return its path."""
    body = {"name": name, "schema": SCHEMA, "properties": properties}
    http.post(f"/v1/namespaces/{NAMESPACE}/tables", json=body).raise_for_status()
    return f"/v1/namespaces/{NAMESPACE}/tables/{name}"


def snapshot(number: int, location: str) -> dict[str, Any]:
    """Return a snapshot as Spark writes it, with the usual summary."""
    made: dict[str, Any] = {
        "snapshot-id": 4_000_000_000_000_000_000 + number,
        "sequence-number": number,
        "timestamp-ms": int(time.time() * 1000) - 10_000_000 + number,
        "manifest-list": f"{location}/metadata/snap-{number}-1-{uuid.UUID(int=number)}.avro",
        "summary": {
            "operation": "append",
            "spark.app.id": "local-1700000000000",
            "added-data-files": "4",
            "added-records": "84194",
            "added-files-size": "1604432",
            "changed-partition-count": "12",
            "total-records": str(84_194 * number),
            "total-files-size": str(1_604_432 * number),
            "total-data-files": str(4 * number),
            "total-delete-files": "0",
            "total-position-deletes": "0",
            "total-equality-deletes": "0",
        },
        "schema-id": 0,
    }
    if number > 1:
        made["parent-snapshot-id"] = made["snapshot-id"] - 1
    return made


def table_with_history(http: httpx.Client, name: str, snapshots: int, warehouse: Path) -> str:
    """Register a table with so many snapshots and return its path."""
    created = http.post(
        f"/v1/namespaces/{NAMESPACE}/tables", json={"name": f"{name}_template", "schema": SCHEMA}
    ).json()
    metadata = created["metadata"]
    location = metadata["location"]
    history = [snapshot(number, location) for number in range(1, snapshots + 1)]
    metadata |= {
        "table-uuid": str(uuid.uuid4()),
        "last-sequence-number": snapshots,
        "current-snapshot-id": history[-1]["snapshot-id"],
        "snapshots": history,
        "snapshot-log": [
            {"timestamp-ms": item["timestamp-ms"], "snapshot-id": item["snapshot-id"]} for item in history
        ],
        "refs": {"main": {"snapshot-id": history[-1]["snapshot-id"], "type": "branch"}},
    }
    path = Path(location.removeprefix("file://")) / "metadata" / f"00000-{uuid.uuid4()}.metadata.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(metadata, separators=(",", ":")))
    assert warehouse in path.parents
    http.post(
        f"/v1/namespaces/{NAMESPACE}/register", json={"name": name, "metadata-location": f"file://{path}"}
    ).raise_for_status()
    return f"/v1/namespaces/{NAMESPACE}/tables/{name}"


def append_body(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return a commit that appends one snapshot."""
    number = metadata["last-sequence-number"] + 1
    added = snapshot(number, metadata["location"])
    head = metadata["refs"].get("main", {}).get("snapshot-id")
    if head is not None:
        added |= {"parent-snapshot-id": head}
    return {
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": head}],
        "updates": [
            {"action": "add-snapshot", "snapshot": added},
            {
                "action": "set-snapshot-ref",
                "ref-name": "main",
                "snapshot-id": added["snapshot-id"],
                "type": "branch",
            },
        ],
    }
