from __future__ import annotations

import gzip
import json
import shutil
import tracemalloc
from pathlib import Path

import pytest

from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location
from app.fileio.memory import MemoryFiles
from app.fileio.schemes import files_for
from app.moving.folder_source import FolderSource, spelled_by_tables
from app.moving.sources import Entry, SourceFailed
from tests.builders.parquet_files import table_of

SALES = Namespace(("sales",))
COLUMN = {"id": 1, "name": "id", "type": "long", "required": False}
UUID = "0193b2b4-0000-7000-8000-000000000001"
ORDERS = Entry(TableIdentifier(SALES, "orders"))


def write(folder: Path, name: str, *earlier: str, **more: object) -> None:
    place = folder / "sales" / "orders" / "metadata" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    log = [{"timestamp-ms": 1, "metadata-file": f"file:{place.parent}/{other}"} for other in earlier]
    document = {} if "view-uuid" in more else table_of([COLUMN]).to_object() | {"table-uuid": UUID}
    content = json.dumps(document | {"last-updated-ms": 1, "metadata-log": log, **more}).encode()
    place.write_bytes(gzip.compress(content) if ".gz" in name else content)


def hint(folder: Path, text: str) -> None:
    (folder / "sales" / "orders" / "metadata" / "version-hint.text").write_text(text)


def newest(folder: Path) -> str:
    found = FolderSource(f"file://{folder}", files_for({})).find_location(ORDERS)
    assert found is not None
    return found.rsplit("/", 1)[1]


def test_folders_are_namespaces_and_tables(tmp_path: Path) -> None:
    write(tmp_path, "v1.metadata.json")
    source = FolderSource(f"file://{tmp_path}", files_for({}), Namespace(("eu",)))

    assert list(source.namespaces()) == [Namespace(("eu", "sales"))]
    found = Entry(TableIdentifier(Namespace(("eu", "sales")), "orders"))
    assert list(source.entries(found.identifier.namespace)) == [found]
    assert source.drop(found, "x") == "x"
    assert source.mark(found, {"a": "b"}) is False
    assert dict(source.properties(SALES)) == {}


def test_a_folder_with_an_empty_step_takes_no_other_tables_place() -> None:
    files = MemoryFiles()
    for place in ("sales/orders", "sales//orders", "/sales/orders"):
        files.write_new(Location(f"memory://lake/{place}/metadata/v1.metadata.json"), b"{}")
    files.write_new(Location("memory://lake/sales/orders/metadata/v2.metadata.json\n"), b"{}")

    source = FolderSource("memory://lake", files)

    assert source.find_location(ORDERS) == "memory://lake/sales/orders/metadata/v1.metadata.json"
    assert set(source.namespaces()) == {SALES, Namespace(("sales", "")), Namespace(("", "sales"))}


def test_folder_of_one_table_needs_a_namespace(tmp_path: Path) -> None:
    write(tmp_path, "v1.metadata.json")
    root = f"file://{tmp_path}/sales/orders/"
    with pytest.raises(SourceFailed, match="has no namespace: name one"):
        FolderSource(root, files_for({}))

    assert list(FolderSource(root, files_for({}), SALES).entries(SALES)) == [ORDERS]


def test_what_was_never_there_and_what_has_vanished_are_at_no_location(tmp_path: Path) -> None:
    write(tmp_path, "v1.metadata.json")
    source = FolderSource(f"file://{tmp_path}", files_for({}))

    assert source.find_location(Entry(TableIdentifier(SALES, "others"))) is None

    shutil.rmtree(tmp_path / "sales" / "orders")
    assert source.find_location(ORDERS) is None


def test_views_are_known_by_their_files(tmp_path: Path) -> None:
    write(tmp_path, "00000-a.gz.metadata.json", **{"view-uuid": "x"})

    assert list(FolderSource(f"file://{tmp_path}", files_for({})).entries(SALES)) == [
        Entry(ORDERS.identifier, "view")
    ]


def test_views_are_known_by_any_file_that_can_be_read(tmp_path: Path) -> None:
    write(tmp_path, "00000-a.metadata.json", **{"view-uuid": "x"})
    write(tmp_path, "00001-b.metadata.json", **{"view-uuid": "x"})
    source = FolderSource(f"file://{tmp_path}", files_for({}))
    (tmp_path / "sales" / "orders" / "metadata" / "00001-b.metadata.json").unlink()

    assert list(source.entries(SALES)) == [Entry(ORDERS.identifier, "view")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("00000-a.metadata.json", b"[" * 100_000),
        ("00000-a.gz.metadata.json", gzip.compress(bytes(100 << 20))),
        ("00000-a.metadata.json", b"[" + b"[]," * 5_000_000 + b"[]]"),
    ],
    ids=["nested too deeply", "unpacks to too much", "too many values"],
)
def test_what_is_no_metadata_is_left_to_the_server(tmp_path: Path, name: str, content: bytes) -> None:
    write(tmp_path, name)
    (tmp_path / "sales" / "orders" / "metadata" / name).write_bytes(content)
    source = FolderSource(f"file://{tmp_path}", files_for({}))
    tracemalloc.start()
    try:
        assert list(source.entries(SALES)) == [ORDERS]
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < 3 * len(content) + (64 << 20)


@pytest.mark.parametrize("text", [None, "2", "2\n", "10", "1", "nonsense", "", "9" * 5_000])
def test_version_goes_on_from_any_hint(tmp_path: Path, text: str | None) -> None:
    for number in range(1, 11):
        write(tmp_path, f"v{number}.metadata.json" if number % 2 else f"v{number}.gz.metadata.json")
    if text is not None:
        hint(tmp_path, text)

    assert newest(tmp_path) == "v10.gz.metadata.json"


def test_gap_behind_the_hint_and_two_files_of_a_version_are_ambiguous(tmp_path: Path) -> None:
    for number in (1, 2, 4):
        write(tmp_path, f"v{number}.metadata.json")
    hint(tmp_path, "1")
    with pytest.raises(SourceFailed, match=r"v2\.metadata\.json, v4\.metadata\.json"):
        newest(tmp_path)

    hint(tmp_path, "4")
    write(tmp_path, "v4.gz.metadata.json")
    with pytest.raises(SourceFailed, match=r"v4\.gz\.metadata\.json, v4\.metadata\.json"):
        newest(tmp_path)


def test_numbered_files_end_where_no_other_names_them(tmp_path: Path) -> None:
    write(tmp_path, "00000-a.metadata.json")
    write(tmp_path, "00001-b.metadata.json", "00000-a.metadata.json")
    # The log of the last one is cut short: the one before it names the first.
    write(tmp_path, "00002-c.metadata.json", "00001-b.metadata.json")
    assert newest(tmp_path) == "00002-c.metadata.json"

    # A number says nothing: this one was written by a commit that lost.
    write(tmp_path, "00002-lost.metadata.json", "00001-b.metadata.json")
    with pytest.raises(SourceFailed, match=r"it may be 00002-c\.metadata\.json, 00002-lost\.metadata\.json"):
        newest(tmp_path)
    write(tmp_path, "00001-z.metadata.json", "00002-c.metadata.json", "00002-lost.metadata.json")
    assert newest(tmp_path) == "00001-z.metadata.json"


def test_file_of_a_lost_race_that_others_have_passed_is_no_candidate(tmp_path: Path) -> None:
    write(tmp_path, "00000-a.metadata.json")
    write(tmp_path, "00001-b.metadata.json", "00000-a.metadata.json")
    write(tmp_path, "00001-lost.metadata.json", "00000-a.metadata.json")
    write(tmp_path, "00002-c.metadata.json", "00000-a.metadata.json", "00001-b.metadata.json")

    assert newest(tmp_path) == "00002-c.metadata.json"


def test_files_of_two_tables_in_one_folder_are_ambiguous(tmp_path: Path) -> None:
    write(tmp_path, "00000-a.metadata.json")
    write(tmp_path, "00001-b.metadata.json", "00000-a.metadata.json")
    write(tmp_path, "00000-other.metadata.json", **{"table-uuid": UUID.replace("1", "2")})

    with pytest.raises(SourceFailed, match=r"it may be 00000-other\.metadata\.json, 00001-b\.metadata\.json"):
        newest(tmp_path)


def test_adopted_file_system_table_ends_at_its_numbered_file(tmp_path: Path) -> None:
    write(tmp_path, "v1.metadata.json")
    write(tmp_path, "v2.metadata.json", "v1.metadata.json")
    write(tmp_path, "00000-a.metadata.json", "v1.metadata.json", "v2.metadata.json")

    assert newest(tmp_path) == "00000-a.metadata.json"


def test_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    write(tmp_path, "00000-a.metadata.json")
    write(tmp_path, "00001-b.metadata.json")
    (tmp_path / "sales/orders/metadata/00001-b.metadata.json").write_text("no json")

    with pytest.raises(SourceFailed, match=r"00001-b\.metadata\.json cannot be read"):
        newest(tmp_path)


def test_table_that_is_gone_has_no_location(tmp_path: Path) -> None:
    write(tmp_path, "v1.metadata.json")
    source = FolderSource(f"file://{tmp_path}", files_for({}))
    (tmp_path / "sales/orders/metadata/v1.metadata.json").unlink()

    assert source.find_location(ORDERS) is None


def test_folder_without_a_table_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(SourceFailed, match="no metadata files"):
            list(FolderSource(f"file://{folder}", files_for({})).namespaces())


@pytest.mark.parametrize("spelled", ["link", "real"])
def test_a_folder_behind_a_link_is_spelled_as_its_tables_are(tmp_path: Path, spelled: str) -> None:
    place = tmp_path / spelled / "sales" / "orders"
    (tmp_path / "link").symlink_to("real")
    log = [{"timestamp-ms": 1, "metadata-file": f"file://{place}/metadata/00000-a.metadata.json"}]
    for name, earlier in (("00000-a", []), ("00001-b", log)):
        write(
            tmp_path / "real",
            f"{name}.metadata.json",
            **{"location": f"file://{place}", "metadata-log": earlier},
        )
    real = f"file://{(tmp_path / 'real').resolve()}"

    root = spelled_by_tables(f"{tmp_path}/link", real, files_for({}))

    assert (
        FolderSource(root, files_for({})).find_location(ORDERS)
        == f"file://{place}/metadata/00001-b.metadata.json"
    )


def test_a_location_and_a_folder_without_tables_are_spelled_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    real = f"file://{(tmp_path / 'real').resolve()}"

    assert spelled_by_tables(f"file://{tmp_path}/link", f"file://{tmp_path}/link", files_for({})) == (
        f"file://{tmp_path}/link"
    )
    assert spelled_by_tables(f"{tmp_path}/link", real, files_for({})) == real
    assert spelled_by_tables(f"{tmp_path}/link/../real", real, files_for({})) == real
