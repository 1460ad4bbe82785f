"""Appending a folder of Parquet files to a table that others change meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.client.catalog import RemoteCatalog
from app.client.http.failures import CatalogRefused
from app.engine.model.data_types.types import parse_primitive
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location
from app.errors import InvalidDataFile
from app.fileio.local import LocalFiles
from app.fileio.tails import Tail
from app.moving.parquet_folders import (
    ParquetFolder,
    append_new_files,
    listed_files,
    look_at,
    preview_new_files,
)
from app.moving.sources import SourceFailed
from tests.builders.aged_tables import DAY_MS, let_be_a_day_old
from tests.builders.http_catalog import http_catalog

RAW = TableIdentifier(Namespace(("a",)), "raw")


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[RemoteCatalog]:
    with http_catalog(tmp_path) as served, RemoteCatalog(str(served.base_url)) as client:
        yield client


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "warehouse" / "raw"
    found.mkdir(parents=True)
    for name in ("a", "b"):
        pq.write_table(pa.table({"id": [1, 2]}), found / f"{name}.parquet")
    return found


def look(paths: Sequence[str]) -> ParquetFolder:
    return look_at(paths, LocalFiles())


def test_table_that_is_made_anew_meanwhile_gets_no_file(catalog: RemoteCatalog, folder: Path) -> None:
    """Which files are new was found out about the table that has gone."""
    first, second = (f"file://{folder / name}" for name in ("a.parquet", "b.parquet"))
    append_new_files(catalog, RAW, {first: 0}, look)

    def look_while_it_is_made_anew(paths: Sequence[str]) -> ParquetFolder:
        found = look(paths)
        catalog.tables.drop(RAW)
        catalog.tables.create(RAW, found.schema.to_object())
        return found

    with pytest.raises(SourceFailed, match=r"a\.raw is another table since this began"):
        append_new_files(catalog, RAW, {first: 0, second: 0}, look_while_it_is_made_anew)

    assert catalog.tables.load(RAW).metadata.get("snapshots") == []
    assert append_new_files(catalog, RAW, {first: 0, second: 0}, look).appended == 2


def write(folder: Path, name: str, number: int) -> None:
    place = folder / name
    place.parent.mkdir(parents=True)
    pq.write_table(pa.table({"id": [number]}), place)


def again(catalog: RemoteCatalog, root: Path) -> int:
    """Append what is new in a folder."""
    files, place = LocalFiles(), f"file://{root}"
    found = dict.fromkeys(listed_files(place, files), 0)
    return append_new_files(catalog, RAW, found, lambda paths: look_at(paths, files, root=place)).appended


def days_of(catalog: RemoteCatalog) -> list[object]:
    return sorted(file["partition"].get("day") for file in catalog.history.files(RAW))


@pytest.mark.parametrize("version", ["1", "2"])
def test_folders_keep_their_values_after_the_table_was_partitioned_anew(
    catalog: RemoteCatalog, tmp_path: Path, version: str
) -> None:
    """Files of them do not have the column: readers would find null."""
    root = tmp_path / "warehouse" / "days"
    write(root, "day=2025-10-08/a.parquet", 1)
    fields = [{"id": 1, "name": "id", "type": "long", "required": False},
              {"id": 2, "name": "day", "type": "date", "required": False}]  # fmt: skip
    by_day = {"source-id": 2, "field-id": 1000, "name": "day", "transform": "identity"}
    catalog.namespaces.create(RAW.namespace)
    catalog.tables.create(
        RAW,
        {"type": "struct", "fields": fields},
        partition_spec={"fields": [by_day]},
        properties={"format-version": version},
    )
    again(catalog, root)
    by_month = {"source-id": 2, "field-id": 1001, "name": "month", "transform": "month"}
    kept = [] if version == "2" else [{**by_day, "transform": "void"}]
    catalog.tables.commit(
        RAW,
        [
            {"action": "add-spec", "spec": {"fields": [*kept, by_month]}},
            {"action": "set-default-spec", "spec-id": -1},
        ],
    )
    write(root, "day=2025-10-09/b.parquet", 2)

    assert again(catalog, root) == 1

    assert days_of(catalog) == ["2025-10-08", "2025-10-09"]


def test_folders_keep_their_values_after_their_column_was_renamed(
    catalog: RemoteCatalog, tmp_path: Path
) -> None:
    """Also where no schema has its old name any more, as after an expiry."""
    root = tmp_path / "warehouse" / "days"
    write(root, "day=2025-10-08/a.parquet", 1)
    again(catalog, root)
    fields = catalog.tables.load(RAW).metadata["schemas"][0]["fields"]
    renamed = [{**field, "name": "on"} if field["name"] == "day" else field for field in fields]
    source = next(field["id"] for field in fields if field["name"] == "day")
    by_month = {"source-id": source, "field-id": 1001, "name": "month", "transform": "month"}
    catalog.tables.commit(
        RAW,
        [
            {"action": "add-schema", "schema": {"type": "struct", "fields": renamed}},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"fields": [by_month]}},
            {"action": "set-default-spec", "spec-id": -1},
        ],
    )
    write(root, "day=2025-10-09/b.parquet", 2)
    again(catalog, root)
    catalog.tables.commit(RAW, [{"action": "remove-schemas", "schema-ids": [0]}])
    write(root, "day=2025-10-10/c.parquet", 3)

    again(catalog, root)

    assert days_of(catalog) == ["2025-10-08", "2025-10-09", "2025-10-10"]


@pytest.mark.parametrize(
    ("types", "said"),
    [
        ({"code": "int"}, r"its folder for partition field code: .*a1"),
        ({"coed": "string"}, "no value of column coed, whose type is given"),
    ],
)
def test_types_that_do_not_fit_the_folders_are_refused_before_a_table_is_made(
    catalog: RemoteCatalog, tmp_path: Path, types: dict[str, str], said: str
) -> None:
    root = tmp_path / "warehouse" / "codes"
    write(root, "code=07/a.parquet", 1)
    write(root, "code=a1/b.parquet", 2)
    place, files = f"file://{root}", LocalFiles()
    given = {name: parse_primitive(text) for name, text in types.items()}

    with pytest.raises(InvalidDataFile, match=said):
        append_new_files(
            catalog, RAW, listed_files(place, files), lambda paths: look_at(paths, files, given, place)
        )

    assert not catalog.tables.exists(RAW)


@pytest.mark.parametrize(
    ("log", "kind"),
    [("_delta_log/00000000000000000000.json", "Delta Lake"), (".hoodie/hoodie.properties", "Hudi")],
)
def test_a_table_of_another_format_is_no_folder_of_files(folder: Path, log: str, kind: str) -> None:
    """Files that it has deleted or rewritten still lie there."""
    (folder / log).parent.mkdir()
    (folder / log).write_text("{}")

    for root in (folder, folder.parent):
        with pytest.raises(SourceFailed, match=f"^file://{folder} is a table of {kind}"):
            listed_files(f"file://{root}", LocalFiles())


def test_a_column_that_files_spell_otherwise_than_their_folders_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "days"
    write(root, "ID=7/a.parquet", 7)
    place = f"file://{root}"

    with pytest.raises(InvalidDataFile, match="its folders name the column ID, and files call it id"):
        look_at([*listed_files(place, LocalFiles())], LocalFiles(), root=place)


def test_folders_that_give_a_column_two_values_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "day=2025-10-07/day=2025-10-08/day=2025-10-09/a.parquet", 1)
    root = f"file://{tmp_path}/day=2025-10-07"
    path = f"{root}/day=2025-10-08/day=2025-10-09/a.parquet"

    with pytest.raises(InvalidDataFile, match="its folders give column day two values"):
        look_at([path], LocalFiles(), root=root)

    # One of them is a name around the folder that is imported, or may be.
    for inner in (f"{root}/day=2025-10-08", ""):
        assert list(look_at([path], LocalFiles(), root=inner).partitions) == ["day"]


def test_one_of_the_folders_of_a_table_keeps_its_value(catalog: RemoteCatalog, tmp_path: Path) -> None:
    """A nightly run may name the folder of the day: its files do not have the column."""
    root = tmp_path / "warehouse" / "days"
    write(root, "day=2025-10-08/a.parquet", 1)
    again(catalog, root)
    write(root, "day=2025-10-09/b.parquet", 2)

    assert again(catalog, root / "day=2025-10-09") == 1

    assert days_of(catalog) == ["2025-10-08", "2025-10-09"]


def test_folders_around_the_named_one_may_be_of_no_column(catalog: RemoteCatalog, tmp_path: Path) -> None:
    root = tmp_path / "warehouse" / "env=prod"
    write(root, "day=2025-10-08/a.parquet", 1)

    again(catalog, root)

    assert days_of(catalog) == ["2025-10-08"]


def test_files_of_a_snapshot_that_was_rolled_back_and_expired_do_not_come_back(
    catalog: RemoteCatalog, folder: Path
) -> None:
    """The snapshot before it may be much older than they are."""
    first, second = (f"file://{folder / name}" for name in ("a.parquet", "b.parquet"))
    append_new_files(catalog, RAW, {first: 0}, look)
    let_be_a_day_old(catalog, RAW)
    append_new_files(catalog, RAW, {first: 0, second: 0}, look)
    newest, oldest = catalog.history.snapshots(RAW)
    catalog.refs.change(RAW, "main", {"rollback-to": oldest["snapshot-id"]})
    catalog.tables.expire(RAW, snapshot_ids=[newest["snapshot-id"]], cleanup="none")

    done = append_new_files(catalog, RAW, {second: newest["timestamp-ms"]}, look)

    assert (done.appended, done.unsure) == (0, [second])
    much_later = newest["timestamp-ms"] + DAY_MS
    assert append_new_files(catalog, RAW, {second: much_later}, look).appended == 1


def test_folders_that_name_a_column_which_the_table_never_had_are_refused(
    catalog: RemoteCatalog, tmp_path: Path
) -> None:
    root = tmp_path / "warehouse" / "days"
    write(root, "day=2025-10-08/a.parquet", 1)
    again(catalog, root)
    write(root, "day=2025-10-09/region=eu/b.parquet", 2)

    with pytest.raises(InvalidDataFile, match="name the column region, which the table does not have"):
        again(catalog, root)

    assert days_of(catalog) == ["2025-10-08"]


def test_a_new_table_whose_files_are_refused_is_said_to_be_empty(
    catalog: RemoteCatalog, folder: Path, tmp_path: Path
) -> None:
    """The server may not read what is outside of the warehouse; the next try goes on with the table."""
    outside = tmp_path / "outside"
    outside.mkdir()
    pq.write_table(pa.table({"id": [1, 2]}), outside / "a.parquet")

    with pytest.raises(
        SourceFailed, match=r"outside warehouse .*\. Table a\.raw has been made and is empty: "
    ):
        append_new_files(catalog, RAW, {f"file://{outside}/a.parquet": 0}, look)
    with pytest.raises(CatalogRefused, match="outside warehouse"):
        append_new_files(catalog, RAW, {f"file://{outside}/a.parquet": 0}, look)

    assert append_new_files(catalog, RAW, {f"file://{folder}/a.parquet": 0}, look).appended == 1


def test_a_namespace_that_was_made_for_a_table_that_is_refused_is_named(
    catalog: RemoteCatalog, folder: Path
) -> None:
    there = {f"file://{folder}/a.parquet": 0}
    made = TableIdentifier(Namespace(("made",)), "raw")

    with pytest.raises(SourceFailed, match=r"outside warehouse .*\. Namespace made has been made$"):
        append_new_files(catalog, made, there, look, location="file:///elsewhere")
    with pytest.raises(CatalogRefused, match="outside warehouse"):
        append_new_files(catalog, made, there, look, location="file:///elsewhere")

    assert catalog.namespaces.exists(made.namespace)


def test_a_preview_of_a_table_that_is_there_is_of_its_new_files(catalog: RemoteCatalog, folder: Path) -> None:
    first, second = (f"file://{folder / name}" for name in ("a.parquet", "b.parquet"))
    anew = preview_new_files(catalog, RAW, {first: 0, second: 0}, look)
    assert not catalog.tables.exists(RAW)
    append_new_files(catalog, RAW, {first: 0}, look)

    some = preview_new_files(catalog, RAW, {first: 0, second: 0}, look)
    none = preview_new_files(catalog, RAW, {first: 0}, look)

    assert (anew.is_there, some.is_there, none.is_there) == (False, True, True)
    assert [list(found.folder.files) if found.folder else [] for found in (anew, some, none)] == [
        [first, second],
        [second],
        [],
    ]


def test_a_preview_refuses_folders_that_do_not_fit_the_table(catalog: RemoteCatalog, tmp_path: Path) -> None:
    root = tmp_path / "warehouse" / "days"
    write(root, "day=2025-10-08/a.parquet", 1)
    again(catalog, root)
    write(root, "day=2025-10-09/region=eu/b.parquet", 2)
    files, place = LocalFiles(), f"file://{root}"

    with pytest.raises(InvalidDataFile, match="name the column region, which the table does not have"):
        preview_new_files(
            catalog, RAW, listed_files(place, files), lambda paths: look_at(paths, files, root=place)
        )


@pytest.mark.parametrize(
    ("name", "flaw"),
    [
        (b"a\xff.parquet", "half of a surrogate pair"),
        (b"day\xff=1/a.parquet", "half of a surrogate pair"),
        (b"day=\xff/a.parquet", "half of a surrogate pair"),
        (b"a\nb.parquet", "a control character"),
    ],
)
def test_a_path_that_the_server_takes_from_nobody_is_refused_before_a_table_is_made(
    catalog: RemoteCatalog, folder: Path, name: bytes, flaw: str
) -> None:
    there = os.fsencode(folder) + b"/" + name
    Path(os.fsdecode(there)).parent.mkdir(exist_ok=True)
    Path(os.fsdecode(there)).write_bytes((folder / "a.parquet").read_bytes())
    place = f"file://{folder}"

    with pytest.raises(InvalidDataFile, match=f"its location cannot be used: it contains {flaw}"):
        append_new_files(catalog, RAW, listed_files(place, LocalFiles()), look)

    assert not catalog.namespaces.exists(RAW.namespace)
    append_new_files(catalog, RAW, {f"{place}/a.parquet": 0}, look)
    with pytest.raises(InvalidDataFile, match=flaw):
        append_new_files(catalog, RAW, listed_files(place, LocalFiles()), look)


def test_a_footer_that_is_said_to_be_very_large_is_not_read(tmp_path: Path) -> None:
    class Asked(LocalFiles):
        most_bytes = 0

        def read_tail(self, location: Location, most_bytes: int) -> Tail:
            self.most_bytes = max(self.most_bytes, most_bytes)
            return super().read_tail(location, most_bytes)

    with (tmp_path / "a.parquet").open("wb") as file:
        file.truncate(1 << 32)
        file.seek(-8, os.SEEK_END)
        file.write((1 << 31).to_bytes(4, "little") + b"PAR1")
    files = Asked()

    with pytest.raises(InvalidDataFile, match="its Parquet footer has too many columns and row groups"):
        look_at([f"file://{tmp_path}/a.parquet"], files)

    assert 0 < files.most_bytes <= 1 << 20
