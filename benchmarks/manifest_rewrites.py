"""Rewriting the manifests of one table: by the server's engine, and by Spark's procedure on an equal table.

Every commit adds files to all partitions, as an ingest does, so each manifest has some of each.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from app.catalog import named
from app.catalog.commits.files.snapshot_files import SnapshotFiles
from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.namespaces import create_namespace
from app.catalog.tables import NewTable
from app.catalog.upkeep.manifest_rewrites import ManifestRewriteRequest, rewrite_manifests
from app.engine.change.updates import AddSnapshot, SetSnapshotRef
from app.engine.manifest_rewrite.wishes import RewriteWish
from app.engine.model.files.manifests import DataFile, EntryStatus, FileContent, ManifestEntry
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location, SpecId
from app.engine.model.partition_spec import UnboundPartitionSpec
from app.engine.model.schema import Schema
from app.engine.model.table_metadata import TableMetadata
from app.fileio.local import LocalFiles
from app.testing import icetower_catalog
from benchmarks.report import Row
from tests.builders.catalogs import new_warehouse, server_on
from tests.builders.commits import commit_table
from tests.servers.spark import start_spark

FILES = int(os.environ.get("ICETOWER_BENCH_REWRITTEN_FILES", "1000000"))
TABLE = TableIdentifier(Namespace(("bench",)), "rewrites")
COLUMNS = 12
A_MANIFEST = 5_000
PARTITIONS = 200


def schema() -> Schema:
    columns = [{"id": at + 1, "name": f"c{at}", "required": False, "type": "long"} for at in range(COLUMNS)]
    return Schema.from_object({"type": "struct", "schema-id": 0, "fields": columns})


def entries(metadata: TableMetadata, start: int, count: int) -> Iterator[ManifestEntry]:
    counts = {at + 1: 10_000 for at in range(COLUMNS)}
    nulls = {at + 1: 0 for at in range(COLUMNS)}
    for number in range(start, start + count):
        day = number % PARTITIONS
        lower = {at + 1: (number * 31 + at).to_bytes(8, "little") for at in range(COLUMNS)}
        upper = {at + 1: (number * 37 + at + 999).to_bytes(8, "little") for at in range(COLUMNS)}
        path = Location(f"{metadata.location}/data/c0={day}/{number:08}-{number * 7919:016x}.parquet")
        sizes = {at + 1: 1000 + number % 977 for at in range(COLUMNS)}
        file = DataFile(
            FileContent.DATA, path, "parquet", SpecId(0), (day,), 10_000, 1 << 20,
            sizes, counts, nulls, None, lower, upper,
        )  # fmt: skip
        yield ManifestEntry(EntryStatus.ADDED, None, None, None, file)


def make_table(catalog: Catalog, identifier: TableIdentifier, files: int) -> None:
    spec = UnboundPartitionSpec.from_object(
        {"fields": [{"name": "c0", "transform": "identity", "source-id": 1}]}
    )
    new = NewTable(identifier, schema(), spec, None, None, {"format-version": "2"})
    metadata = named.create(catalog, new).metadata
    staged = StagedFiles(catalog, remembers_contents=False)
    writer = SnapshotFiles(catalog, staged, metadata)
    snapshot_id = writer.new_id()
    manifests = [
        writer.write_manifest(
            SpecId(0), snapshot_id, list(entries(metadata, start, min(A_MANIFEST, files - start)))
        )
        for start in range(0, files, A_MANIFEST)
    ]
    summary = {
        "operation": "append",
        "total-records": str(files * 10_000),
        "total-data-files": str(files),
        "total-delete-files": "0",
    }
    snapshot = writer.write_snapshot(None, snapshot_id, manifests, summary)
    staged.settle()
    ref = SetSnapshotRef(ref_name="main", snapshot_id=snapshot_id, type="branch")
    commit_table(catalog, identifier, [], [AddSnapshot(snapshot=snapshot), ref])


@dataclass(frozen=True)
class Rewritten:
    """What a rewrite took."""

    replaced: int
    created: int
    seconds: float
    processor_s: float
    more_mib: float
    """How much its process grew."""


def measure(folder: Path) -> list[Row]:
    """Rewrite all manifests of two equal tables, one by the server's engine and one by Spark."""
    place = folder / "manifest-rewrites"
    place.mkdir()
    # In a process of its own: the memory of all that was measured before is not its.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        ours = pool.submit(by_server, place, FILES).result()
    spark_s = by_spark(place, FILES)
    what = f"rewrite of the manifests of {FILES:,} files, {ours.replaced} into {ours.created}"
    beside = f"Spark's procedure: {spark_s:.1f} s"
    return [
        Row(what, f"{ours.seconds:.1f} s", beside, f"{spark_s / ours.seconds:.1f}", "–"),
        Row("the same, processor time", f"{ours.processor_s:.1f} s", "–", "–", "–"),
        Row("the same, more memory", f"{ours.more_mib:.0f} MiB", "–", "–", "–"),
    ]


def memory_mib(fact: str) -> float:
    """Return the memory of this process now (`VmRSS`) or at its highest (`VmHWM`)."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[fact].split()[0]) / 1024


def catalog_in(folder: Path, name: str) -> Catalog:
    server = server_on(f"sqlite:///{folder}/{name}.db", LocalFiles())
    catalog = new_warehouse(server, root=f"file://{folder}/{name}")
    create_namespace(catalog, TABLE.namespace, {})
    return catalog


def by_server(folder: Path, files: int) -> Rewritten:
    catalog = catalog_in(folder, "server")
    make_table(catalog, TABLE, files)
    Path("/proc/self/clear_refs").write_text("5")  # What was highest is forgotten.
    before_mib = memory_mib("VmRSS")
    started_s, processor_s = time.perf_counter(), time.process_time()
    done, _ = rewrite_manifests(catalog, TABLE, ManifestRewriteRequest(RewriteWish(rewrites_all=True)))
    return Rewritten(
        done.replaced,
        done.created,
        time.perf_counter() - started_s,
        time.process_time() - processor_s,
        memory_mib("VmHWM") - before_mib,
    )


def by_spark(folder: Path, files: int) -> float:
    """Return the seconds that Spark's procedure needs."""
    catalog = catalog_in(folder, "spark")
    make_table(catalog, TABLE, files)
    location = named.load(catalog, TABLES, TABLE).location
    with icetower_catalog(warehouse_location=f"file://{folder}/spark") as url:
        spark = start_spark(folder, "tower", url)
        try:
            spark.sql("CREATE NAMESPACE tower.bench")
            spark.sql(f"CALL tower.system.register_table('bench.rewrites', '{location}')")
            started_s = time.perf_counter()
            spark.sql("CALL tower.system.rewrite_manifests(table => 'bench.rewrites', use_caching => false)")
            return time.perf_counter() - started_s
        finally:
            spark.stop()
