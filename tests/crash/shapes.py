"""What a namespace holds, without the names of its files; and that the files which it needs are there."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import fastavro
import httpx

from app.engine.model.files.manifests import EntryStatus

Shape = dict[str, Any]
_OWN = ("a", "b")


def shape_of(client: httpx.Client, namespace: str) -> Shape:
    """Return what is in a namespace, and check that no file of it is missing."""
    shape: Shape = {"dropped": _dropped(client, namespace)}
    _add_namespace(client, (namespace,), shape)
    warehouse = client.get(f"/management/v1/warehouses/{namespace}")
    if warehouse.status_code == 200:
        shape["warehouse"] = warehouse.json()["default-properties"]
    return shape


def _get(client: httpx.Client, path: str) -> Any:
    answer = client.get(path)
    assert answer.status_code == 200, f"{path}: {answer.text}"
    return answer.json()


def _add_namespace(client: httpx.Client, levels: tuple[str, ...], shape: Shape) -> None:
    path = f"/v1/namespaces/{'%1F'.join(levels)}"
    properties = _get(client, path)["properties"]
    inner = ".".join(("", *levels[1:]))
    shape[f"namespace {inner}"] = {name: properties[name] for name in _OWN if name in properties}
    for kind, look in (("tables", _table), ("views", _view)):
        for identifier in _get(client, f"{path}/{kind}")["identifiers"]:
            name = identifier["name"]
            shape[f"{kind} {inner}.{name}"] = look(client, f"{path}/{kind}/{name}")
    for child in _get(client, f"/v1/namespaces?parent={'%1F'.join(levels)}")["namespaces"]:
        _add_namespace(client, tuple(child), shape)


def _table(client: httpx.Client, path: str) -> Shape:
    loaded = _get(client, path)
    metadata = loaded["metadata"]
    check_files(loaded["metadata-location"], metadata)
    ids = [snapshot["snapshot-id"] for snapshot in metadata["snapshots"]]
    jobs = _get(client, f"{path}/maintenance/jobs")["jobs"]
    return {
        "events": [event["event"] for event in _get(client, f"{path}/history")["events"]],
        "snapshots": len(ids),
        "refs": {name: ids.index(ref["snapshot-id"]) for name, ref in metadata.get("refs", {}).items()},
        "properties": {name: metadata["properties"][name] for name in _OWN if name in metadata["properties"]},
        "jobs": [(job["state"], job["leased-until-ms"] - job["began-ms"] > 1_000_000) for job in jobs],
        "orphans": len(_get(client, f"{path}/orphans")["runs"]),
        "statistics": len(metadata.get("partition-statistics", [])),
    }


def _view(client: httpx.Client, path: str) -> Shape:
    loaded = _get(client, path)
    assert _path(loaded["metadata-location"]).is_file()
    return {
        "versions": len(loaded["metadata"]["versions"]),
        "log": len(loaded["metadata"]["version-log"]),
        "current": loaded["metadata"]["current-version-id"],
    }


def _dropped(client: httpx.Client, namespace: str) -> list[tuple[str, str]]:
    found = [item for item in _get(client, "/v1/dropped")["dropped"] if item["namespace"][0] == namespace]
    for item in found:
        location = item.get("metadata-location")
        if location is not None and item["kind"] == "table":
            check_files(location, _read(location))
        elif location is not None:
            assert _path(location).is_file()
    return sorted((item["kind"], item.get("name", "")) for item in found)


def _path(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def _read(location: str) -> Any:
    content = _path(location).read_bytes()
    return json.loads(gzip.decompress(content) if ".gz" in location else content)


def needed_files(location: str, metadata: Any) -> set[Path]:
    """Return all files that a table's metadata names, data files included."""
    needed = {_path(location), *(_path(entry["metadata-file"]) for entry in metadata["metadata-log"])}
    needed |= {_path(item["statistics-path"]) for item in metadata.get("partition-statistics", [])}
    for snapshot in metadata["snapshots"]:
        manifest_list = _path(snapshot["manifest-list"])
        needed.add(manifest_list)
        for manifest in _records(manifest_list):
            path = _path(manifest["manifest_path"])
            needed.add(path)
            needed |= {
                _path(entry["data_file"]["file_path"])
                for entry in _records(path)
                if entry["status"] != EntryStatus.DELETED
            }
    return needed


def _records(path: Path) -> list[Any]:
    with path.open("rb") as file:
        return list(fastavro.reader(file))


def check_files(location: str, metadata: Any) -> None:
    """Check that no file that a table's metadata names is missing."""
    gone = [path for path in needed_files(location, metadata) if not path.is_file()]
    assert not gone, gone
