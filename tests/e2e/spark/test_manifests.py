"""Manifests of tables that engines wrote are read as Iceberg reads them; manifests of ours are read by every engine."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestampType

from app.engine.model.files.manifests import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata, read_table_metadata
from app.formats.manifests.columns import ManifestColumns
from app.formats.manifests.lists import assign_numbers, read_manifest_list, write_manifest_list
from app.formats.manifests.writer import write_manifest
from examples.flights.comparison import duckdb_with_iceberg
from tests.conformance.manifests.in_json import entry_in_json, manifest_in_json
from tests.conformance.manifests.reference import Reference
from tests.servers.jvm import iceberg_jvm
from tests.servers.spark import Sql, nightly, path_of
from tests.strategies.manifest_entries import partition_kinds

pytestmark = pytest.mark.spark

VERSIONS = pytest.mark.parametrize("version", [nightly(1), 2, 3])


@pytest.fixture(scope="module")
def reference() -> Iterator[Reference]:
    # Spark loads Iceberg where Java's own look-up by name does not find it.
    with iceberg_jvm() as iceberg:
        yield Reference(iceberg)


def read(location: str) -> bytes:
    return path_of(location).read_bytes()


def loaded(url: str, namespace: str, table: str) -> TableMetadata:
    answer = httpx.get(f"{url}/v1/namespaces/{namespace}/tables/{table}").raise_for_status().json()
    return read_table_metadata(read(answer["metadata-location"]))


def check_all_manifests(reference: Reference, metadata: TableMetadata) -> set[tuple[int, int]]:
    """Compare every list and manifest of a table; return which contents and statuses were in them."""
    seen: set[str] = set()
    kinds_seen: set[tuple[int, int]] = set()
    for snapshot in metadata.snapshots:
        assert snapshot.manifest_list is not None
        listed = read(snapshot.manifest_list)
        reference.put(snapshot.manifest_list, listed)
        theirs = reference.read_list(snapshot.manifest_list)
        ours = tuple(read_manifest_list(listed, snapshot.manifest_list).values)
        assert [manifest_in_json(item) for item in ours] == [
            reference.manifest_in_json(item) for item in theirs
        ]
        for our_manifest, their_manifest in zip(ours, theirs, strict=True):
            if our_manifest.manifest_path not in seen:
                seen.add(our_manifest.manifest_path)
                kinds_seen |= check_manifest(reference, metadata, our_manifest, their_manifest)
    return kinds_seen


def check_manifest(
    reference: Reference, metadata: TableMetadata, ours: ManifestFile, theirs: Any
) -> set[tuple[int, int]]:
    content = read(ours.manifest_path)
    reference.put(ours.manifest_path, content)
    spec = next(item for item in metadata.partition_specs if item.spec_id == ours.partition_spec_id)
    schema = metadata.current_schema
    entries = tuple(ManifestColumns(ours, content))
    kinds = partition_kinds(schema, spec)
    assert [entry_in_json(entry, spec, kinds) for entry in entries] == list(
        reference.entries(theirs, reference.spec(schema, spec))
    )
    return {(int(entry.file.content), int(entry.status)) for entry in entries}


def spark_history(sql: Sql, version: int) -> None:
    """Every kind of commit, three specs, nulls, NaN and names beyond ASCII."""
    mode = "merge-on-read" if version > 1 else "copy-on-write"
    sql(
        "CREATE TABLE t (id bigint, word string, price double, cents decimal(9,2), at timestamp_ntz, raw binary,"
        " place struct<city: string, code: int>, tags array<string>, notes map<string, string>) USING iceberg"
        f" PARTITIONED BY (bucket(4, id), word) TBLPROPERTIES ('format-version' = '{version}',"
        f" 'write.delete.mode' = '{mode}', 'write.update.mode' = '{mode}', 'write.merge.mode' = '{mode}',"
        " 'commit.manifest.min-count-to-merge' = '3')"
    )
    row = (
        "SELECT id, CASE WHEN id % 3 = 0 THEN NULL WHEN id % 3 = 1 THEN 'zürich \U0001f3d4' ELSE 'a/b=c' END,"
        " CASE WHEN id % 5 = 0 THEN double('NaN') ELSE id / 7 END, CAST(id * 1.01 AS decimal(9,2)),"
        " timestamp_ntz'2026-01-30 22:00:00' + make_interval(0, 0, 0, 0, int(id)),"
        " CAST(concat('b', id) AS binary), named_struct('city', 'c', 'code', int(id)), array('x', NULL), map('k', 'v')"
    )
    sql(f"INSERT INTO t {row} FROM range(12)")
    sql(f"INSERT INTO t {row} FROM range(12, 24)")
    sql("DELETE FROM t WHERE id IN (3, 13)")
    sql("ALTER TABLE t ADD PARTITION FIELD days(at)")
    sql(f"INSERT INTO t {row} FROM range(24, 40)")
    sql("UPDATE t SET price = -0.0 WHERE id = 25")
    sql("ALTER TABLE t RENAME COLUMN word TO name")
    sql("ALTER TABLE t DROP PARTITION FIELD bucket(4, id)")
    sql("ALTER TABLE t ADD PARTITION FIELD truncate(2, cents)")
    sql(f"INSERT INTO t {row} FROM range(50, 53)")
    sql("CALL system.rewrite_manifests(table => 'our.t', use_caching => false)")
    sql("DELETE FROM t WHERE name = 'a/b=c'")


@VERSIONS
def test_what_spark_wrote(sql: Sql, sqlite_server: str, reference: Reference, version: int) -> None:
    spark_history(sql, version)

    seen = check_all_manifests(reference, loaded(sqlite_server, sql.namespace, "t"))

    wanted = {(0, 0), (0, 1), (0, 2)}
    assert seen >= (wanted if version == 1 else wanted | {(1, 1)})


@pytest.mark.parametrize("version", ["1", "2"])
def test_what_pyiceberg_wrote(sql: Sql, sqlite_server: str, reference: Reference, version: str) -> None:
    schema = Schema(
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "word", StringType(), required=False),
        NestedField(3, "price", DoubleType(), required=False),
        NestedField(4, "at", TimestampType(), required=False),
    )
    # Its other transforms are compiled and come in a package of their own.
    spec = PartitionSpec(
        PartitionField(2, 1000, IdentityTransform(), "word"),
        PartitionField(4, 1001, IdentityTransform(), "at"),
    )
    catalog = RestCatalog("tower", uri=sqlite_server)
    table = catalog.create_table(
        (sql.namespace, "t"), schema, partition_spec=spec, properties={"format-version": version}
    )
    at = pa.array([1, 86_400_123_457, None], pa.timestamp("us"))
    rows = pa.table(
        {"id": [1, 2, None], "word": ["ä", None, "c"], "price": [1.5, float("nan"), None], "at": at}
    )
    table.append(rows)
    table.append(rows)
    table.delete("id = 2")
    table.overwrite(rows, "word = 'c'")

    seen = check_all_manifests(reference, loaded(sqlite_server, sql.namespace, "t"))

    assert seen >= {(0, 0), (0, 1), (0, 2)}


@pytest.fixture(scope="module")
def duckdb_query(tmp_path_factory: pytest.TempPathFactory, sqlite_server: str) -> Callable[[str], Any]:
    connection = duckdb_with_iceberg(tmp_path_factory.mktemp("extensions"))
    connection.execute(
        f"ATTACH '' AS tower (TYPE iceberg, ENDPOINT '{sqlite_server}', AUTHORIZATION_TYPE 'none')"
    )
    return lambda statement: connection.execute(statement).fetchall()


def test_what_duckdb_wrote(
    sql: Sql, sqlite_server: str, reference: Reference, duckdb_query: Callable[[str], Any]
) -> None:
    name = f"tower.{sql.namespace}.t"
    duckdb_query(f"CREATE TABLE {name} (id BIGINT, word VARCHAR, price DOUBLE, moment TIMESTAMP)")
    duckdb_query(
        f"INSERT INTO {name} SELECT range, CASE WHEN range % 2 = 0 THEN 'w' END, range / 3,"
        " TIMESTAMP '2026-01-01' + range * INTERVAL 1 HOUR FROM range(100)"
    )
    duckdb_query(f"INSERT INTO {name} VALUES (1000, 'ü', 'NaN', NULL)")
    duckdb_query(f"DELETE FROM {name} WHERE id < 5")

    seen = check_all_manifests(reference, loaded(sqlite_server, sql.namespace, "t"))

    assert seen >= {(0, 1), (1, 1)}


def written_again(metadata: TableMetadata, copied: Path) -> Snapshot:
    """Write a snapshot with the live files of the current one in manifests of ours, and one data file once more.

    Data files whose rows are deleted by position cannot be had twice, so the copy is of the newest file.
    """
    current = metadata.current_snapshot
    assert current is not None
    assert current.manifest_list is not None
    snapshot_id = SnapshotId(current.snapshot_id // 2)
    number = metadata.last_sequence + 1
    manifests: list[ManifestFile] = []
    newest: ManifestEntry | None = None
    template: ManifestFile | None = None
    for manifest in read_manifest_list(read(current.manifest_list), current.manifest_list).values:
        entries = ManifestColumns(manifest, read(manifest.manifest_path))
        live = [entry for entry in entries if entry.is_live]
        manifests.append(
            manifest_of(
                metadata,
                [replace(entry, status=EntryStatus.EXISTING) for entry in live],
                manifest,
                snapshot_id,
            )
        )
        for entry in live if manifest.content is ManifestContent.DATA else ():
            if newest is None or (entry.data_sequence_number or 0) > (newest.data_sequence_number or 0):
                newest = entry
                template = manifest
    assert newest is not None
    assert template is not None
    shutil.copy(path_of(newest.file.file_path), copied)
    again = replace(newest.file, file_path=Location(f"file:{copied}"), first_row_id=None)
    added = ManifestEntry(EntryStatus.ADDED, snapshot_id, None, None, again)
    manifests.append(manifest_of(metadata, [added], template, snapshot_id))
    numbered, next_row_id = assign_numbers(
        manifests,
        sequence_number=number,
        first_row_id=metadata.next_row_id if metadata.format_version > 2 else None,
    )
    location = Location(f"{metadata.location}/metadata/snap-{snapshot_id}-ours.avro")
    path_of(location).write_bytes(
        write_manifest_list(
            numbered,
            format_version=metadata.format_version,
            snapshot_id=snapshot_id,
            parent_snapshot_id=current.snapshot_id,
            sequence_number=number,
            first_row_id=metadata.next_row_id if metadata.format_version > 2 else None,
        ).content
    )
    row_lineage: dict[str, Any] = {}
    if metadata.format_version > 2:
        assert next_row_id is not None
        row_lineage = {
            "first_row_id": metadata.next_row_id,
            "added_rows": next_row_id - (metadata.next_row_id or 0),
        }
    return Snapshot(
        snapshot_id=snapshot_id,
        parent_snapshot_id=current.snapshot_id,
        sequence_number=number if metadata.format_version > 1 else None,
        timestamp_ms=metadata.last_updated_ms + 1,
        manifest_list=location,
        summary={"operation": "overwrite"},
        schema_id=metadata.current_schema_id,
        **row_lineage,
    )


def manifest_of(
    metadata: TableMetadata, entries: list[ManifestEntry], like: ManifestFile, snapshot_id: SnapshotId
) -> ManifestFile:
    spec = next(item for item in metadata.partition_specs if item.spec_id == like.partition_spec_id)
    written = write_manifest(
        entries,
        schema=metadata.current_schema,
        spec=spec,
        format_version=metadata.format_version,
        content=like.content,
        snapshot_id=snapshot_id,
    )
    name = f"{snapshot_id}-{path_of(like.manifest_path).stem}-{len(written.content)}.avro"
    location = Location(f"{metadata.location}/metadata/{name}")
    path_of(location).write_bytes(written.content)
    return written.at(location)


@VERSIONS
def test_every_engine_reads_what_we_wrote(
    sql: Sql, sqlite_server: str, reference: Reference, duckdb_query: Callable[[str], Any], version: int
) -> None:
    spark_history(sql, version)
    metadata = loaded(sqlite_server, sql.namespace, "t")
    before = sql("SELECT count(*), sum(id), count(name) FROM t")[0]
    snapshot = written_again(metadata, path_of(metadata.location) / "data" / "again.parquet")
    (file_rows,) = sql(
        f"SELECT count(*), sum(id), count(name) FROM parquet.`{metadata.location}/data/again.parquet`"
    )
    updates = [
        {"action": "add-snapshot", "snapshot": snapshot.to_object()},
        {
            "action": "set-snapshot-ref",
            "ref-name": "main",
            "type": "branch",
            "snapshot-id": snapshot.snapshot_id,
        },
    ]

    answer = httpx.post(
        f"{sqlite_server}/v1/namespaces/{sql.namespace}/tables/t",
        json={"requirements": [], "updates": updates},
    )

    assert answer.status_code == 200, answer.text
    check_all_manifests(reference, loaded(sqlite_server, sql.namespace, "t"))
    expected = tuple(old + new for old, new in zip(before, file_rows, strict=True))
    sql("REFRESH TABLE t")
    assert sql("SELECT count(*), sum(id), count(name) FROM t") == [expected]
    assert duckdb_query(f"SELECT count(*), sum(id), count(name) FROM tower.{sql.namespace}.t") == [expected]
    rows = RestCatalog("tower", uri=sqlite_server).load_table((sql.namespace, "t")).scan().to_arrow()
    ids = rows["id"].to_pylist()
    assert (len(ids), sum(ids), len(rows) - rows["name"].null_count) == expected
