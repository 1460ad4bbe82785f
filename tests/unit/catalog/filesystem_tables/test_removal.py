"""What a drop of a file-system table deletes, and what stays."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from app.catalog import named, tables
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.filesystem_tables import removal
from app.engine.model.ids import Location
from app.errors import NoSuchTable
from app.fileio.local import LocalFiles
from app.tree_errors import TreeRefusal
from tests.builders.catalogs import with_server
from tests.builders.file_system import identifier, new_table

T = identifier("ns.t")


def test_table_made_anew_behind_a_drop_stays(tree: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """The drop has deleted the last version, and still has to remove the folders."""
    remove, left = removal._remove_folders, [1]

    def others_first(*arguments: object) -> bool:
        if left:
            left.pop()
            named.create(with_server(tree), new_table("ns.t", color="red"))
        return remove(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(removal, "_remove_folders", others_first)

    tables.purge_table(tree, T)

    assert tree.read_now(TABLES, T)[1].properties["color"] == "red"


def test_slow_drop_leaves_the_table_that_came_meanwhile(tree: Catalog) -> None:
    """Another drop was faster, and then its name was free."""
    left = [1]

    def others_first(step: str) -> None:
        if step == "dropped_but_versions" and left:
            left.pop()
            tables.purge_table(with_server(tree), T)
            named.create(with_server(tree), new_table("ns.t", color="red"))

    tables.purge_table(with_server(tree, step=others_first), T)

    assert tree.read_now(TABLES, T)[1].properties["color"] == "red"


@pytest.mark.parametrize(
    ("link", "name"),
    [("ns/b", "ns.b"), ("other", "other.t"), ("ns/c/metadata", "ns.c")],
    ids=["the table's folder", "a namespace's", "the metadata's"],
)
def test_drop_by_the_name_of_a_link_is_refused(tree: Catalog, tmp_path: Path, link: str, name: str) -> None:
    root = tmp_path / "tables"
    target = {"ns/b": root / "ns" / "t", "other": root / "ns"}.get(link, root / "ns" / "t" / "metadata")
    (root / link).parent.mkdir(exist_ok=True)
    (root / link).symlink_to(target)

    with pytest.raises(TreeRefusal, match="symbolic link"):
        tables.purge_table(tree, identifier(name))

    named.check_exists(tree, TABLES, T)


def test_warehouse_whose_root_is_a_link_has_drops(tree: Catalog, tmp_path: Path) -> None:
    (tmp_path / "tables").rename(tmp_path / "elsewhere")
    (tmp_path / "tables").symlink_to(tmp_path / "elsewhere")

    tables.purge_table(tree, T)

    assert not (tmp_path / "elsewhere" / "ns" / "t").exists()


def test_table_of_a_read_only_warehouse_keeps_its_files(
    tree: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_files: LocalFiles, location: Location) -> None:
        raise TreeRefusal(f"Cannot commit to file-system tables in {location}: no keys")

    monkeypatch.setattr(LocalFiles, "check_writes_once", refuse)

    with pytest.raises(TreeRefusal, match="no keys"):
        tables.purge_table(tree, T)

    named.check_exists(tree, TABLES, T)


def link_to_folder(place: Path) -> None:
    place.symlink_to(place.parents[4])


def link_to_file(place: Path) -> None:
    place.symlink_to(__file__)


@pytest.mark.parametrize("make", [link_to_folder, link_to_file, os.mkfifo])
def test_what_is_no_file_stays_and_the_table_is_gone(
    tree: Catalog, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    data = tmp_path / "tables" / "ns" / "t" / "data"
    data.mkdir()
    make(data / "strange")

    tables.purge_table(tree, T)

    with pytest.raises(NoSuchTable):
        named.check_exists(tree, TABLES, T)
    assert [path.name for path in data.iterdir()] == ["strange"]
    named.create(tree, new_table("ns.t"))
