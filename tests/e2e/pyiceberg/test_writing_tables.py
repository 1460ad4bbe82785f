"""PyIceberg writes rows and changes tables."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import BadRequestError, CommitFailedException, NoSuchTableError
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest, Table, TableIdentifier
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import DoubleType, IntegerType, ListType, LongType, NestedField, StringType, StructType

from tests.builders.folders import files_below
from tests.e2e.patience import wait_until

ARROW = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("word", pa.string())])
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "word", StringType()),
    identifier_field_ids=[1],
)


def rows(*pairs: tuple[int, str | None]) -> pa.Table:
    return pa.table(
        {"id": [number for number, _ in pairs], "word": [word for _, word in pairs]}, schema=ARROW
    )


def content(table: Table, **scan: object) -> list[tuple[int, str | None]]:
    read = table.scan(**scan).to_arrow()  # type: ignore[arg-type]  # whatever a scan takes
    return sorted(zip(read["id"].to_pylist(), read["word"].to_pylist(), strict=True))


@pytest.fixture
def table(catalog: RestCatalog, namespace: str) -> Table:
    created: Table = catalog.create_table((namespace, "t"), SCHEMA)
    return created


def reloaded(catalog: RestCatalog, table: Table) -> Table:
    loaded: Table = catalog.load_table(table.name())
    return loaded


def test_append_delete_and_overwrite_are_seen_by_the_next_reader(catalog: RestCatalog, table: Table) -> None:
    table.append(rows((1, "one"), (2, "two"), (3, "three")))
    table.append(rows((4, "four")))
    table.delete("id = 2")
    table.overwrite(rows((30, "thirty")), overwrite_filter="id >= 3")

    again = reloaded(catalog, table)

    assert content(again) == [(1, "one"), (30, "thirty")]
    operations = [str(snapshot.summary.operation.value) for snapshot in again.snapshots() if snapshot.summary]
    assert operations[:3] == ["append", "append", "overwrite"]
    assert again.last_sequence_number == len(again.snapshots())
    totals = again.snapshots()[-1].summary
    assert totals is not None
    assert totals["total-records"] == "2"


@pytest.mark.parametrize("codec", ["deflate", "zstandard", "bzip2", "null"])
def test_manifests_are_written_with_codecs_by_their_names_in_avro(
    catalog: RestCatalog, namespace: str, codec: str
) -> None:
    table = catalog.create_table(
        (namespace, "packed"), SCHEMA, properties={"write.avro.compression-codec": codec}
    )
    table.append(rows((1, "one"), (2, "two")))
    table.delete("id = 2")

    again = reloaded(catalog, table)

    assert content(again) == [(1, "one")]
    assert again.properties["write.avro.compression-codec"] == codec


def test_upsert_updates_what_is_there_and_inserts_the_rest(catalog: RestCatalog, table: Table) -> None:
    table.append(rows((1, "one"), (2, "two")))

    result = table.upsert(rows((1, "one"), (2, "TWO"), (3, "three")))

    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    assert content(reloaded(catalog, table)) == [(1, "one"), (2, "TWO"), (3, "three")]


def test_dynamic_partition_overwrite_replaces_the_partitions_it_writes(
    catalog: RestCatalog, table: Table
) -> None:
    with table.update_spec() as spec:
        spec.add_identity("word")
    table.append(rows((1, "a"), (2, "b"), (3, "b")))

    table.dynamic_partition_overwrite(rows((4, "b")))

    assert content(reloaded(catalog, table)) == [(1, "a"), (4, "b")]


def test_add_files_takes_parquet_files_as_they_are(
    catalog: RestCatalog, table: Table, tmp_path: Path
) -> None:
    file = tmp_path / "outside.parquet"
    pa.parquet.write_table(rows((7, "seven")), file)
    with pytest.raises(BadRequestError, match=f"adds files outside .* {file}"):
        table.add_files([str(file)])
    table.transaction().set_properties({"icetower.guard.ignore": "outside-location"}).commit_transaction()

    table.add_files([str(file)])

    assert content(reloaded(catalog, table)) == [(7, "seven")]
    assert table.inspect.files()["file_path"].to_pylist() == [str(file)]


def test_schema_evolves_nested_fields_too(catalog: RestCatalog, table: Table) -> None:
    table.append(rows((1, "one")))
    with table.update_schema() as update:
        update.add_column("point", StructType(NestedField(10, "x", IntegerType())))
        update.add_column("tags", ListType(11, StringType(), element_required=False))
    with table.update_schema() as update:
        update.add_column(("point", "y"), DoubleType(), doc="height")
        update.update_column(("point", "x"), LongType())
        update.rename_column("word", "name")
        update.move_first("tags")
        update.update_column("word", doc="what it is called")

    again = reloaded(catalog, table)

    assert [field.name for field in again.schema().fields] == ["tags", "id", "name", "point"]
    point = again.schema().find_type("point")
    assert isinstance(point, StructType)
    assert [(field.name, str(field.field_type), field.doc) for field in point.fields] == [
        ("x", "long", None),
        ("y", "double", "height"),
    ]
    name = again.schema().find_field("name")
    assert (name.field_id, name.doc) == (2, "what it is called")
    assert len(again.schemas()) == 3
    assert again.scan().to_arrow()["name"].to_pylist() == ["one"]

    with again.update_schema() as update:
        update.delete_column("point")
    assert [field.name for field in reloaded(catalog, again).schema().fields] == ["tags", "id", "name"]


def test_partitions_evolve_and_old_files_keep_theirs(catalog: RestCatalog, table: Table) -> None:
    table.append(rows((1, "a")))
    with table.update_spec() as spec:
        spec.add_field("id", IdentityTransform(), "shard")
        spec.add_identity("word")
    table.append(rows((2, "a"), (3, "b")))
    with table.update_spec() as spec:
        spec.remove_field("shard")
        spec.rename_field("word", "letter")
    table.append(rows((4, "b")))

    again = reloaded(catalog, table)

    assert [(field.name, str(field.transform)) for field in again.spec().fields] == [("letter", "identity")]
    assert sorted(again.inspect.files()["spec_id"].to_pylist()) == [0, 1, 1, 2]
    assert content(again, row_filter="word = 'b'") == [(3, "b"), (4, "b")]
    assert again.specs()[0] == UNPARTITIONED_PARTITION_SPEC


def test_sort_order_is_replaced_and_kept(catalog: RestCatalog, table: Table) -> None:
    with table.update_sort_order() as order:
        order.asc("word", IdentityTransform())
    with table.update_sort_order() as order:
        order.desc("id", BucketTransform(8))

    again = reloaded(catalog, table)

    assert sorted(again.sort_orders()) == [0, 1, 2]
    assert [str(field.transform) for field in again.sort_order().fields] == ["bucket[8]"]


def test_properties_and_several_changes_in_one_transaction(catalog: RestCatalog, table: Table) -> None:
    with table.transaction() as transaction:
        transaction.set_properties(owner="ice", floor="3")
        transaction.append(rows((1, "one")))
        with transaction.update_schema() as update:
            update.add_column("length", LongType())
    with table.transaction() as transaction:
        transaction.remove_properties("floor")

    again = reloaded(catalog, table)

    assert again.properties.get("owner") == "ice"
    assert "floor" not in again.properties
    assert again.scan().to_arrow()["length"].to_pylist() == [None]
    assert len(again.metadata.metadata_log) == 2


def test_upgrade_to_version_2(catalog: RestCatalog, namespace: str) -> None:
    table = catalog.create_table((namespace, "v1"), SCHEMA, properties={"format-version": "1"})
    table.append(rows((1, "one")))
    assert table.format_version == 1

    with table.transaction() as transaction:
        transaction.upgrade_table_version(2)
    table.append(rows((2, "two")))

    again = reloaded(catalog, table)
    assert (again.format_version, again.last_sequence_number) == (2, 1)
    assert content(again) == [(1, "one"), (2, "two")]


def test_branches_and_tags(catalog: RestCatalog, table: Table) -> None:
    table.append(rows((1, "one")))
    first = table.snapshots()[0].snapshot_id
    with table.manage_snapshots() as refs:
        refs.create_tag(first, "old", max_ref_age_ms=1_000_000)
        refs.create_branch(first, "audit", min_snapshots_to_keep=2)
    assert reloaded(catalog, table).refs()["audit"].min_snapshots_to_keep == 2
    table.append(rows((2, "two")), branch="audit")
    table.append(rows((3, "three")))

    again = reloaded(catalog, table)

    assert content(again) == [(1, "one"), (3, "three")]
    assert content(again, snapshot_id=first) == [(1, "one")]
    assert again.scan().use_ref("audit").count() == 2
    assert again.scan().use_ref("old").count() == 1
    refs_now = again.refs()
    assert refs_now["old"].snapshot_ref_type == SnapshotRefType.TAG
    assert refs_now["old"].max_ref_age_ms == 1_000_000
    assert refs_now["audit"].snapshot_ref_type == SnapshotRefType.BRANCH

    with again.manage_snapshots() as refs:
        refs.remove_tag("old")
        refs.remove_branch("audit")
    assert list(reloaded(catalog, table).refs()) == ["main"]


def test_rollback_and_current_snapshot(catalog: RestCatalog, table: Table) -> None:
    table.append(rows((1, "one")))
    table.append(rows((2, "two")))
    first, second = (snapshot.snapshot_id for snapshot in table.snapshots())

    with table.manage_snapshots() as snapshots:
        snapshots.rollback_to_snapshot(first)
    assert content(reloaded(catalog, table)) == [(1, "one")]

    with table.manage_snapshots() as snapshots:
        snapshots.set_current_snapshot(second)
    assert content(reloaded(catalog, table)) == [(1, "one"), (2, "two")]
    assert [entry.snapshot_id for entry in reloaded(catalog, table).history()] == [
        first,
        second,
        first,
        second,
    ]


def test_expire_snapshots_keeps_what_a_ref_names(catalog: RestCatalog, table: Table) -> None:
    for number in range(4):
        table.append(rows((number, None)))
    ids = [snapshot.snapshot_id for snapshot in table.snapshots()]
    with table.manage_snapshots() as refs:
        refs.create_tag(ids[1], "kept")

    table.maintenance.expire_snapshots().older_than(datetime.now(UTC) + timedelta(days=1)).commit()

    again = reloaded(catalog, table)
    assert sorted(snapshot.snapshot_id for snapshot in again.snapshots()) == sorted([ids[1], ids[3]])
    assert content(again) == [(number, None) for number in range(4)]


def test_purge_deletes_every_file(catalog: RestCatalog, table: Table) -> None:
    table.append(rows((1, "one")))
    folder = Path(table.location().removeprefix("file://"))
    assert files_below(folder)

    catalog.purge_table(table.name())

    with pytest.raises(NoSuchTableError):
        catalog.load_table(table.name())
    wait_until(lambda: not files_below(folder))


def test_a_stale_schema_change_is_refused_and_changes_nothing(catalog: RestCatalog, table: Table) -> None:
    stale = reloaded(catalog, table)
    with table.update_schema() as update:
        update.add_column("mine", LongType())

    late = stale.update_schema().add_column("theirs", LongType())
    with pytest.raises(CommitFailedException, match="Requirement failed: current schema changed"):
        late.commit()

    assert [field.name for field in reloaded(catalog, table).schema().fields] == ["id", "word", "mine"]


def test_racing_appends_all_land_once(catalog: RestCatalog, table: Table) -> None:
    with table.transaction() as transaction:
        transaction.set_properties({"commit.retry.num-retries": "50", "commit.retry.min-wait-ms": "10"})
    together = threading.Barrier(4)

    def append(writer: int) -> None:
        mine = reloaded(catalog, table)
        together.wait()
        for number in range(5):
            mine.append(rows((writer * 100 + number, None)))

    with ThreadPoolExecutor(4) as writers:
        list(writers.map(append, range(4)))

    again = reloaded(catalog, table)
    assert content(again) == [(writer * 100 + number, None) for writer in range(4) for number in range(5)]
    assert len(again.snapshots()) == 20


def test_a_herd_with_the_default_retries_lands_as_a_whole(catalog: RestCatalog, table: Table) -> None:
    together = threading.Barrier(12)

    def append(writer: int) -> None:
        mine = reloaded(catalog, table)
        together.wait()
        for number in range(2):
            mine.append(rows((writer * 100 + number, None)))

    with ThreadPoolExecutor(12) as writers:
        list(writers.map(append, range(12)))

    again = reloaded(catalog, table)
    assert content(again) == [(writer * 100 + number, None) for writer in range(12) for number in range(2)]


def test_a_transaction_over_two_tables_is_all_or_nothing(catalog: RestCatalog, namespace: str) -> None:
    one, two = (catalog.create_table((namespace, name), SCHEMA) for name in ("one", "two"))

    assert commit_together(catalog, one, two, rows((1, "first"))) == 204
    assert [content(reloaded(catalog, table)) for table in (one, two)] == [[(1, "first")], [(1, "first")]]

    # The second table is behind now, so neither may change.
    fresh, stale = reloaded(catalog, one), two
    before = [reloaded(catalog, table).metadata_location for table in (one, two)]
    assert commit_together(catalog, fresh, stale, rows((2, "second"))) == 409
    assert [reloaded(catalog, table).metadata_location for table in (one, two)] == before


def commit_together(catalog: RestCatalog, one: Table, two: Table, data: pa.Table) -> int:
    """Append to two tables in one request; PyIceberg prepares each change but has no call for the request."""
    changes = []
    for table in (one, two):
        transaction = table.transaction()
        transaction.append(data)
        *namespace, name = table.name()
        request = CommitTableRequest(
            identifier=TableIdentifier(namespace=namespace, name=name),
            requirements=transaction._requirements,
            updates=transaction._updates,
        )
        changes.append(request.model_dump_json())
    body = f'{{"table-changes": [{", ".join(changes)}]}}'
    return catalog._session.post(catalog.url("transactions/commit"), data=body.encode()).status_code
