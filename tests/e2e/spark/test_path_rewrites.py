"""F24: a table's paths are rewritten, the files copied by the list, and the copy registered: it has the same rows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location
from app.fileio.schemes import files_for
from app.maintenance.path_rewrite import RewrittenPaths, rewrite_paths
from app.maintenance.spark.procedures import JobRefused
from app.maintenance.staged_copies import PathChange, check_copy
from tests.servers.spark import Sql, nightly, path_of

pytestmark = pytest.mark.spark


@pytest.fixture
def catalog(sqlite_server: str) -> Iterator[RemoteCatalog]:
    with RemoteCatalog(sqlite_server) as connected:
        yield connected


def make_table(sql: Sql, catalog: RemoteCatalog, version: int) -> PathChange:
    """A table of three commits with commas and spaces in its partitions; answer where a copy of it shall be."""
    sql("CREATE TABLE probe (id int) USING iceberg")
    probe = path_of(catalog.tables.load(named(sql, "probe")).metadata["location"])
    here = probe.with_name("moving")
    sql(
        f"CREATE TABLE moving (id int, word string) USING iceberg PARTITIONED BY (word) LOCATION 'file:{here}'"
        f" TBLPROPERTIES ('format-version' = '{version}')"
    )
    for start in range(3):
        sql(f"INSERT INTO moving SELECT CAST(id * 3 + {start} AS int), concat('a, b', id % 2) FROM range(50)")
    return PathChange(f"file:{here}", f"file:{here.parent}/a-place-with-a-longer-name/moved")


def named(sql: Sql, table: str) -> TableIdentifier:
    return TableIdentifier(Namespace((sql.namespace,)), table)


def rewritten(
    sql: Sql, catalog: RemoteCatalog, uri: str, change: PathChange, *copied: Location
) -> RewrittenPaths:
    found = rewrite_paths(
        catalog, sql.spark.newSession, named(sql, "moving"), change, copied=copied, spark_catalog={"uri": uri}
    )
    assert isinstance(found, RewrittenPaths), found
    return found


def copy_files(file_list: Location) -> None:
    """What the person does."""
    for line in path_of(file_list).read_text().splitlines():
        source, target = map(path_of, line.split(","))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


@pytest.mark.parametrize("version", [3, nightly(2)])
def test_f24_copy_at_another_place_has_the_same_rows(
    sql: Sql, catalog: RemoteCatalog, sqlite_server: str, version: int
) -> None:
    change = make_table(sql, catalog, version)
    lineage = ", _row_id, _last_updated_sequence_number" if version == 3 else ""
    before = sorted(sql(f"SELECT *{lineage} FROM moving"))
    first = sql.one("SELECT min(snapshot_id) FROM our.moving.snapshots WHERE parent_id IS NULL")

    found = rewritten(sql, catalog, sqlite_server, change)

    assert found.copy.flaws == ()
    assert found.copy.mended == 3  # Iceberg 1.10 leaves the old lengths.
    copy_files(found.copy.file_list)
    shutil.rmtree(path_of(change.source) / "data")  # The copy must not need it.
    catalog.tables.register(named(sql, "moved"), found.metadata_location)
    assert sorted(sql(f"SELECT *{lineage} FROM moved")) == before
    assert sql.one(f"SELECT count(*) FROM moved VERSION AS OF {first}") == 50
    for path, length in sql("SELECT path, length FROM our.moved.all_manifests"):
        assert path.startswith(change.target)
        assert path_of(path).stat().st_size == length


@pytest.mark.nightly
def test_f24_what_came_since_the_first_copy_is_copied_in_a_second_step(
    sql: Sql, catalog: RemoteCatalog, sqlite_server: str
) -> None:
    change = make_table(sql, catalog, 2)
    first = rewritten(sql, catalog, sqlite_server, change).copy
    copy_files(first.file_list)
    sql("INSERT INTO moving SELECT CAST(id + 1000 AS int), 'c' FROM range(7)")
    sql("DELETE FROM moving WHERE word = 'a, b1'")
    before = sorted(sql("SELECT * FROM moving"))

    found = rewritten(sql, catalog, sqlite_server, change, first.file_list)

    assert found.copy.flaws == ()
    data = [line for line in path_of(found.copy.file_list).read_text().splitlines() if ".parquet" in line]
    assert len(data) == 1
    copy_files(found.copy.file_list)
    shutil.rmtree(path_of(change.source) / "data")
    catalog.tables.register(named(sql, "moved"), found.metadata_location)
    assert sorted(sql("SELECT * FROM moved")) == before
    assert sql.one("SELECT count(*) FROM our.moved.all_data_files") > 1
    for path, length in sql("SELECT path, length FROM our.moved.all_manifests"):
        assert path_of(path).stat().st_size == length


def test_f24_delete_files_are_refused_where_iceberg_mixes_them_up(
    sql: Sql, catalog: RemoteCatalog, sqlite_server: str
) -> None:
    change = make_table(sql, catalog, 2)
    sql("ALTER TABLE moving SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    sql("DELETE FROM moving WHERE id = 4")

    with pytest.raises(JobRefused, match=r"Iceberg 1\.10\.\d mixes up delete files .*15155"):
        rewritten(sql, catalog, sqlite_server, change)


def test_f24_copy_that_says_something_else_is_found(
    sql: Sql, catalog: RemoteCatalog, sqlite_server: str
) -> None:
    """Each flaw is made in the staged files, and the list of Spark is looked at again."""
    change = make_table(sql, catalog, 2)
    original = Location(str(catalog.tables.load(named(sql, "moving")).metadata_location))
    mended = rewritten(sql, catalog, sqlite_server, change).copy.file_list
    file_list = Location(mended.removesuffix("-mended"))
    staged = path_of(file_list).parent
    lines = path_of(file_list).read_text().splitlines()
    manifests = sorted(path for path in staged.rglob("*-m0.avro"))

    def flaws() -> str:
        for leftover in staged.rglob("*-mended*"):
            leftover.unlink()
        return " ".join(check_copy(files_for({}), change, original, file_list).flaws)

    assert flaws() == ""
    data = next(line for line in lines if ".parquet" in line)
    path_of(file_list).write_text("\n".join(line for line in lines if line != data))
    assert "is not in the list of files to copy" in flaws()
    path_of(file_list).write_text("\n".join(lines))
    swap(manifests[0], manifests[1])
    assert "has other files than" in flaws()
    swap(manifests[0], manifests[1])
    document = staged / "metadata" / Path(original).name
    document.write_text(document.read_text().replace(change.target, change.source))
    assert f"location is {change.source}" in flaws()
    manifests[0].unlink()
    assert "is not there" in flaws()


def swap(one: Path, other: Path) -> None:
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
