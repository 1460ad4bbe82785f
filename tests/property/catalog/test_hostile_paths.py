"""Whatever paths a client plants in its table's files, no other table and nothing that is in use loses a file."""

from __future__ import annotations

import itertools
import json
import uuid
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.server import Server
from app.catalog.deletions.expiry import ExpiryRequest, expire_snapshots
from app.catalog.tables import NewTable, purge_table
from app.engine.change.updates import SetProperties
from app.engine.model.files.manifests import (
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.table_metadata import TableMetadata
from app.engine.retention.expired_snapshots import ExpiryWish
from app.engine.retention.reachability import CleanupLevel
from app.fileio.memory import MemoryFiles
from app.formats.manifests.lists import assign_numbers, write_manifest_list
from app.formats.manifests.writer import write_manifest
from tests.builders.catalogs import START_MS, new_warehouse, server_on
from tests.builders.commits import commit_table
from tests.builders.queues import work_off_one
from tests.builders.table_files import TableFiles
from tests.builders.tables import FLIGHTS, SCHEMA, append, load_table, namespace_in

HOSTILE = TableIdentifier(FLIGHTS, "hostile")
ROLES = (
    "data", "position-deletes", "equality-deletes", "deletion-vector", "manifest", "manifest-list", "manifests",
    "statistics", "partition-statistics", "metadata-log",
)  # fmt: skip
ENDS = ("expire", "expire-metadata", "purge", "delete-after-commit")
_numbers = itertools.count(1)
_snapshot_ids = itertools.count(100)


@dataclass
class Ground:
    """One warehouse with two victims, and a table that names their files."""

    catalog: Catalog
    store: MemoryFiles
    root: str

    def table(self, name: str, location: str | None = None, **properties: str) -> TableIdentifier:
        identifier = TableIdentifier(FLIGHTS, name)
        named_so = {key.replace("_", "."): value for key, value in properties.items()}
        named.create(
            self.catalog,
            NewTable(identifier, SCHEMA, None, None, location and f"{self.root}/{location}", named_so),
        )
        files = TableFiles(self.store)
        for each in ("a", "b", "c"):
            made = files.snapshot(self.metadata(identifier), [f"{name}-{each}"])
            commit_table(self.catalog, identifier, [], append(made))
        return identifier

    def metadata(self, identifier: TableIdentifier) -> TableMetadata:
        found = load_table(self.catalog, identifier).metadata
        assert isinstance(found, TableMetadata)
        return found

    def there(self) -> set[str]:
        return {item.location for item in self.store.list_files(Location("memory://"))} | {
            location for location in self.store._files if location.startswith(self.root)
        }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> tuple[Server, MemoryFiles]:
    folder: Path = tmp_path_factory.mktemp("hostile")
    store = MemoryFiles()
    return server_on(f"sqlite:///{folder}/icetower.db", store), store


def ground_on(server: Server, store: MemoryFiles) -> Ground:
    root = f"memory://wh{next(_numbers)}"
    catalog = new_warehouse(server, root.removeprefix("memory://"), root)
    namespace_in(catalog)
    return Ground(catalog, store, root)


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    """Where the hostile table lies, what it names in which roles (by number), and how it ends."""
    return {
        "location": draw(
            st.sampled_from(
                [
                    "apart",
                    "apart",
                    "apart",
                    "apart",
                    "",
                    "one",
                    "one/data",
                    "one/metadata",
                    "one/x",
                    "data-of-two",
                ]
            )
        ),
        "property": draw(st.sampled_from([None, None, None, "one", "one/data", "data-of-two", ""])),
        "named": draw(
            st.lists(st.tuples(st.sampled_from(ROLES), st.integers(0, 60)), min_size=1, max_size=4)
        ),
        "end": draw(st.sampled_from(ENDS)),
    }


@given(plan=plans())
def test_victims_and_what_is_in_use_keep_their_files(
    server: tuple[Server, MemoryFiles], plan: dict[str, Any]
) -> None:
    ground = ground_on(*server)
    before = ground.there()
    ground.table("one", "one")
    ground.table(
        "two", None, write_data_path=f"{ground.root}/data-of-two", write_metadata_path=f"{ground.root}/meta"
    )
    ground.store.write_new(Location(f"{ground.root}/data-of-two/{uuid.uuid4()}.parquet"), b"rows of two")
    of_victims = ground.there() - before
    ground.table("hostile", plan["location"])
    candidates = sorted(of_victims) + sorted(reached(ground, ground.metadata(HOSTILE)))
    document = planted(
        ground, plan, [(role, candidates[number % len(candidates)]) for role, number in plan["named"]]
    )
    location = Location(f"{ground.metadata(HOSTILE).location}/metadata/00009-{uuid.uuid4()}.metadata.json")
    ground.store.write_new(location, json.dumps(document).encode())
    named.register(ground.catalog, TABLES, HOSTILE, location, overwrite=True)
    in_use = reached(ground, ground.metadata(HOSTILE), "main")

    planted_there = ground.there()

    end(ground, plan["end"])

    event(f"{plan['end']} deleted something: {bool(planted_there - ground.there())}")
    assert of_victims - ground.there() == set()
    if plan["end"] != "purge":
        assert in_use - ground.there() == set()
        assert load_table(ground.catalog, HOSTILE).location in ground.there()


def end(ground: Ground, how: str) -> None:
    """Do what deletes files, and let all of it be done."""
    everything = ExpiryRequest(ExpiryWish(older_than_ms=START_MS * 2, retain_last=1))
    if how == "expire":
        expire_snapshots(ground.catalog, HOSTILE, everything)
    elif how == "expire-metadata":
        expire_snapshots(ground.catalog, HOSTILE, replace(everything, cleanup=CleanupLevel.METADATA_ONLY))
    elif how == "purge":
        purge_table(ground.catalog, HOSTILE)
    else:
        for number in range(3):
            commit_table(ground.catalog, HOSTILE, [], [SetProperties(updates={"n": str(number)})])
    while work_off_one(ground.catalog.server):
        pass


def reached(ground: Ground, metadata: TableMetadata, ref: str | None = None) -> set[str]:
    """Return the files that a table, or one ref of it, reaches."""
    files = TableFilesSource(ground)
    heads = [metadata.snapshots_by_id[metadata.snapshot_refs[ref].snapshot_id]] if ref else metadata.snapshots
    return {path for snapshot in heads for path in files.of(str(snapshot.manifest_list))}


class TableFilesSource:
    """Reads manifests, as the reference does."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def of(self, manifest_list: str) -> set[str]:

        def records(location: str) -> list[dict[str, Any]]:
            return list(fastavro.reader(BytesIO(self._ground.store.read(Location(location)))))  # type: ignore[arg-type]  # records are mappings here

        found = {manifest_list}
        for manifest in records(manifest_list):
            found.add(manifest["manifest_path"])
            for entry in records(manifest["manifest_path"]):
                if entry["status"] != 2:
                    found.add(entry["data_file"]["file_path"])
        return found


def planted(ground: Ground, plan: dict[str, Any], names: list[tuple[str, str]]) -> dict[str, Any]:
    """Return the hostile table's metadata with one more, old snapshot that names all this."""
    metadata = ground.metadata(HOSTILE)
    document: dict[str, Any] = json.loads(metadata.to_json())
    by_role: dict[str, list[str]] = {}
    for role, path in names:
        by_role.setdefault(role, []).append(path)
    snapshots = [
        planted_snapshot(ground, metadata, by_role),
        *(old_snapshot(metadata, **{"manifest-list": path}) for path in by_role.get("manifest-list", ())),
    ]
    if "manifests" in by_role:
        snapshots.append(old_snapshot(metadata, manifests=by_role["manifests"]))
    document["snapshots"] = [*snapshots, *document["snapshots"]]
    first = snapshots[0]["snapshot-id"]
    document["statistics"] = [
        {
            "snapshot-id": snapshots[number % len(snapshots)]["snapshot-id"],
            "statistics-path": path,
            "file-size-in-bytes": 1,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [],
        }
        for number, path in enumerate(by_role.get("statistics", ()))
    ][:1]
    document["partition-statistics"] = [
        {"snapshot-id": first, "statistics-path": path, "file-size-in-bytes": 1}
        for path in by_role.get("partition-statistics", ())
    ][:1]
    document["metadata-log"] = [
        {"timestamp-ms": START_MS, "metadata-file": path} for path in by_role.get("metadata-log", ())
    ] + document["metadata-log"]
    if plan["property"] is not None:
        document["properties"]["write.data.path"] = f"{ground.root}/{plan['property']}"
    if plan["end"] == "delete-after-commit":
        document["properties"]["write.metadata.delete-after-commit.enabled"] = "true"
        document["properties"]["write.metadata.previous-versions-max"] = "1"
    return document


def old_snapshot(metadata: TableMetadata, **fields: Any) -> dict[str, Any]:
    return {
        "snapshot-id": next(_snapshot_ids),
        "sequence-number": 1,
        "timestamp-ms": metadata.snapshots[0].timestamp_ms,
        "summary": {"operation": "append"},
        "schema-id": 0,
        **fields,
    }


def planted_snapshot(
    ground: Ground, metadata: TableMetadata, by_role: dict[str, list[str]]
) -> dict[str, Any]:
    """Write a snapshot whose manifests and manifest list name files of others."""
    files = TableFiles(ground.store)
    made = old_snapshot(metadata)
    snapshot_id = SnapshotId(made["snapshot-id"])
    own = files._data_file(metadata, f"own-{snapshot_id}")
    shapes: dict[str, dict[str, Any]] = {
        "data": {},
        "position-deletes": {"content": FileContent.POSITION_DELETES},
        "equality-deletes": {"content": FileContent.EQUALITY_DELETES, "equality_ids": (1,)},
        "deletion-vector": {
            "content": FileContent.POSITION_DELETES,
            "file_format": "puffin",
            "content_offset": 4,
            "content_size_in_bytes": 4,
            "referenced_data_file": own.file_path,
        },
    }
    manifests: list[ManifestFile] = []
    for role, shape in shapes.items():
        entries = [
            ManifestEntry(
                EntryStatus.ADDED, snapshot_id, None, None, replace(own, file_path=Location(path), **shape)
            )
            for path in by_role.get(role, ())
        ]
        written = write_manifest(
            entries or [ManifestEntry(EntryStatus.ADDED, snapshot_id, None, None, replace(own, **shape))],
            schema=metadata.current_schema,
            spec=metadata.default_spec,
            format_version=3 if role == "deletion-vector" else 2,
            content=ManifestContent.DELETES if shape else ManifestContent.DATA,
            snapshot_id=snapshot_id,
        )
        where = Location(f"{metadata.location}/metadata/{snapshot_id}-{role}.avro")
        ground.store.write_new(where, written.content)
        manifests.append(written.at(where))
    for path in by_role.get("manifest", ()):
        manifests.append(replace(manifests[0], manifest_path=Location(path)))
    numbered, _ = assign_numbers(manifests, sequence_number=1)
    location = Location(f"{metadata.location}/metadata/snap-{snapshot_id}.avro")
    ground.store.write_new(
        location,
        write_manifest_list(
            numbered, format_version=2, snapshot_id=snapshot_id, parent_snapshot_id=None, sequence_number=1
        ).content,
    )
    return {**made, "manifest-list": location}
