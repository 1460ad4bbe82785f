"""DuckDB attaches a server, reads what others wrote, and writes what others read."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    DecimalType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from examples.flights.comparison import duckdb_with_iceberg
from tests.builders.parquet_files import parquet
from tests.e2e.duckdb.attached import Duck

ORDERS = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "item", StringType()),
    NestedField(3, "price", DecimalType(10, 2)),
    NestedField(4, "moment", TimestamptzType()),
    NestedField(5, "place", StructType(NestedField(6, "shelf", IntegerType()))),
    NestedField(7, "tags", ListType(8, StringType(), element_required=False)),
)
NUMBERS = Schema(NestedField(1, "id", LongType()), NestedField(2, "kind", StringType()))


def create(duck: Duck, name: str, schema: Schema = NUMBERS, **properties: str) -> Table:
    made: Table = duck.pyiceberg.create_table(
        (duck.schema, name),
        schema,
        properties={key.replace("_", "-"): text for key, text in properties.items()},
    )
    return made


def numbers(duck: Duck, name: str) -> list[int]:
    """What PyIceberg reads of a table that DuckDB wrote."""
    read = duck.pyiceberg.load_table((duck.schema, name)).scan().to_arrow()
    return sorted(read["id"].to_pylist())


def test_attach_by_warehouse_name_and_to_an_unknown_one(extensions: Path, sqlite_server: str) -> None:
    with duckdb_with_iceberg(extensions) as connection:
        attach = f"(TYPE iceberg, ENDPOINT '{sqlite_server}', AUTHORIZATION_TYPE 'none')"
        connection.execute(f"ATTACH 'default' AS tower {attach}")
        with pytest.raises(duckdb.Error, match="NotFound_404"):
            connection.execute(f"ATTACH 'nowhere' AS other {attach}")


def test_reads_what_pyiceberg_wrote(duck: Duck) -> None:
    table = create(duck, "orders", ORDERS)
    moment = dt.datetime(2024, 2, 29, 12, 0, tzinfo=dt.UTC)
    row = {
        "id": 1,
        "item": "ice",
        "price": Decimal("1.50"),
        "moment": moment,
        "place": {"shelf": 7},
        "tags": ["a", "b"],
    }
    table.append(pa.Table.from_pylist([row, dict.fromkeys(row)], schema=table.schema().as_arrow()))

    seen = duck("SELECT id, item, price, epoch(moment), place.shelf, tags FROM our.orders ORDER BY id")

    assert seen == [(1, "ice", Decimal("1.50"), moment.timestamp(), 7, ["a", "b"]), (None,) * 6]
    assert duck("SELECT count(*) FROM our.orders WHERE id = 1 AND item LIKE 'i%'") == [(1,)]


def test_inserts_updates_merges_and_deletes_are_read_by_pyiceberg(duck: Duck) -> None:
    create(duck, "numbers")

    duck("INSERT INTO our.numbers SELECT i, 'old' FROM range(100) r(i)")
    duck("DELETE FROM our.numbers WHERE id >= 50")
    duck("UPDATE our.numbers SET kind = 'new' WHERE id < 3")
    duck(
        "MERGE INTO our.numbers USING (SELECT i AS id FROM range(49, 52) r(i)) AS more ON numbers.id = more.id"
        " WHEN MATCHED THEN UPDATE SET kind = 'merged' WHEN NOT MATCHED THEN INSERT VALUES (more.id, 'added')"
    )

    assert numbers(duck, "numbers") == list(range(52))
    kinds = {"old": 46, "new": 3, "merged": 1, "added": 2}
    assert dict(duck("SELECT kind, count(*) FROM our.numbers GROUP BY kind")) == kinds
    read = duck.pyiceberg.load_table((duck.schema, "numbers")).scan().to_arrow()
    assert {kind: read["kind"].to_pylist().count(kind) for kind in kinds} == kinds


def test_version_3_deletes_are_read_back(duck: Duck) -> None:
    create(duck, "numbers", format_version="3")

    duck("INSERT INTO our.numbers SELECT i, 'x' FROM range(10) r(i)")
    duck("DELETE FROM our.numbers WHERE id % 2 = 0")

    assert duck("SELECT id FROM our.numbers ORDER BY id") == [(1,), (3,), (5,), (7,), (9,)]


def test_partitioned_tables_are_written_partition_by_partition(duck: Duck) -> None:
    by_kind = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "kind"))
    table = duck.pyiceberg.create_table((duck.schema, "numbers"), NUMBERS, partition_spec=by_kind)

    duck("INSERT INTO our.numbers VALUES (1, 'a'), (2, 'b'), (3, 'b')")
    duck("DELETE FROM our.numbers WHERE kind = 'a'")
    duck("UPDATE our.numbers SET id = 30 WHERE id = 3")

    assert duck("SELECT * FROM our.numbers ORDER BY id") == [(2, "b"), (30, "b")]
    assert numbers(duck, "numbers") == [2, 30]
    kinds = {partition["kind"] for partition in table.refresh().inspect.data_files()["partition"].to_pylist()}
    assert kinds >= {"b"}


def test_tables_are_created_altered_renamed_and_dropped(duck: Duck) -> None:
    duck("CREATE TABLE our.numbers (id BIGINT NOT NULL, price DECIMAL(10, 2), place STRUCT(shelf INTEGER))")
    duck("INSERT INTO our.numbers VALUES (1, 1.5, {'shelf': 3})")
    duck("ALTER TABLE our.numbers ADD COLUMN word VARCHAR")
    duck("ALTER TABLE our.numbers RENAME COLUMN price TO cost")
    duck("ALTER TABLE our.numbers DROP COLUMN place")
    duck("ALTER TABLE our.numbers RENAME TO renamed")

    assert duck("SELECT * FROM our.renamed") == [(1, Decimal("1.50"), None)]
    loaded = duck.pyiceberg.load_table((duck.schema, "renamed"))
    assert [(field.name, str(field.field_type), field.required) for field in loaded.schema().fields] == [
        ("id", "long", True),
        ("cost", "decimal(10, 2)", False),
        ("word", "string", False),
    ]
    assert "does not exist" in duck.fails("SELECT * FROM our.numbers")
    assert "already exists" in duck.fails("CREATE TABLE our.renamed (id BIGINT)")

    duck("DROP TABLE our.renamed")
    assert duck.pyiceberg.list_tables(duck.schema) == []
    duck("DROP TABLE IF EXISTS our.renamed")


def test_partitioned_tables_are_created(duck: Duck) -> None:
    duck("CREATE TABLE our.numbers (id BIGINT, kind VARCHAR) PARTITIONED BY (kind)")
    duck("INSERT INTO our.numbers VALUES (1, 'a'), (2, 'b')")

    loaded = duck.pyiceberg.load_table((duck.schema, "numbers"))

    kind = loaded.schema().find_field("kind").field_id
    assert [(field.source_id, str(field.transform)) for field in loaded.spec().fields] == [(kind, "identity")]
    assert numbers(duck, "numbers") == [1, 2]


def test_create_table_as_select(duck: Duck, sqlite_server: str) -> None:
    # With a staged create DuckDB misses the metadata folder: it makes none on a local disk.
    duck(
        f"ATTACH '' AS unstaged (TYPE iceberg, ENDPOINT '{sqlite_server}', AUTHORIZATION_TYPE 'none',"
        " STAGE_CREATE_TABLES false)"
    )
    duck(f"CREATE TABLE unstaged.{duck.schema}.numbers AS SELECT i AS id FROM range(10) r(i)")

    assert numbers(duck, "numbers") == list(range(10))


def test_a_transaction_over_two_tables_is_all_or_nothing(duck: Duck) -> None:
    create(duck, "one")
    create(duck, "two")

    duck("BEGIN")
    duck("INSERT INTO our.one VALUES (1, 'a')")
    duck("INSERT INTO our.two VALUES (2, 'b')")
    assert numbers(duck, "one") == []
    duck("COMMIT")
    assert [numbers(duck, "one"), numbers(duck, "two")] == [[1], [2]]

    duck("BEGIN")
    duck("INSERT INTO our.one VALUES (10, 'a')")
    duck("INSERT INTO our.two VALUES (20, 'b')")
    table = duck.pyiceberg.load_table((duck.schema, "two"))
    table.append(pa.table({"id": [3], "kind": ["meanwhile"]}))
    assert "409" in duck.fails("COMMIT")
    assert [numbers(duck, "one"), numbers(duck, "two")] == [[1], [2, 3]]

    duck("BEGIN")
    duck("INSERT INTO our.one VALUES (100, 'a')")
    duck("ROLLBACK")
    assert numbers(duck, "one") == [1]


def test_the_past_is_read_by_snapshot(duck: Duck) -> None:
    create(duck, "numbers")
    for number in (1, 2):
        duck(f"INSERT INTO our.numbers VALUES ({number}, 'x')")

    snapshots = duck("SELECT sequence_number, snapshot_id FROM iceberg_snapshots(our.numbers) ORDER BY 1")

    assert [number for number, _ in snapshots] == [1, 2]
    first = snapshots[0][1]
    assert duck(f"SELECT id FROM our.numbers AT (VERSION => {first})") == [(1,)]
    assert duck("SELECT count(*) FROM our.numbers AT (TIMESTAMP => TIMESTAMP '2001-01-01')") == [(0,)]


def test_table_properties_are_set_and_removed(duck: Duck) -> None:
    create(duck, "numbers")

    duck("CALL set_iceberg_table_properties(our.numbers, {'owner': 'duck'})")
    assert ("owner", "duck") in duck("SELECT * FROM iceberg_table_properties(our.numbers)")
    duck("CALL remove_iceberg_table_properties(our.numbers, ['owner'])")

    assert "owner" not in duck.pyiceberg.load_table((duck.schema, "numbers")).properties


def test_schemas_are_created_listed_and_dropped_when_empty(duck: Duck) -> None:
    name = f"{duck.schema}_more"
    duck(f"CREATE SCHEMA tower.{name}")
    assert "already exists" in duck.fails(f"CREATE SCHEMA tower.{name}")
    duck(f"CREATE SCHEMA IF NOT EXISTS tower.{name}")
    duck.pyiceberg.create_table((name, "t"), NUMBERS)
    assert "is not empty" in duck.fails(f"DROP SCHEMA tower.{name}")

    duck.pyiceberg.drop_table((name, "t"))
    duck(f"DROP SCHEMA tower.{name}")

    assert not duck.pyiceberg.namespace_exists(name)


def test_rows_that_were_appended_by_reference_are_read(duck: Duck) -> None:
    table = duck.pyiceberg.create_table(f"{duck.schema}.numbers", NUMBERS)
    folder = Path(table.location().removeprefix("file://"), "data")
    folder.mkdir(parents=True)
    for number in range(3):
        rows = pa.table({"id": [number, number + 10], "kind": ["a", None]})
        (folder / f"{number}.parquet").write_bytes(parquet(rows))
    with RemoteCatalog(duck.pyiceberg.uri) as client:
        identifier = TableIdentifier(Namespace((duck.schema,)), "numbers")
        for number in range(3):
            client.appends.append(identifier, [f"{table.location()}/data/{number}.parquet"])

    assert duck("SELECT id, kind FROM our.numbers WHERE id > 1 ORDER BY id") == [
        (2, "a"),
        (10, None),
        (11, None),
        (12, None),
    ]


def test_manifests_of_deletion_vectors_are_rewritten(duck: Duck) -> None:
    """DuckDB lists them with first row ids, which deletes do not have."""
    create(duck, "numbers", format_version="3")
    for start in (0, 10):
        duck(f"INSERT INTO our.numbers SELECT i, 'x' FROM range({start}, {start + 10}) r(i)")
        duck(f"DELETE FROM our.numbers WHERE id = {start + 1}")

    with RemoteCatalog(duck.pyiceberg.uri) as client:
        identifier = TableIdentifier(Namespace((duck.schema,)), "numbers")
        rewritten = client.upkeep.rewrite_manifests(identifier, rewrite_all=True)

    assert rewritten.manifests_replaced == 4
    assert numbers(duck, "numbers") == [number for number in range(20) if number % 10 != 1]
