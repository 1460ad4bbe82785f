"""New tables of rows do not come to lie in the folders of file-system tables, of which no row knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.catalog import named, namespaces, tables
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.places import tables_of_trees
from app.catalog.context.places.tables_of_trees import check_no_table_around
from app.engine.change.updates import SetLocation
from app.engine.model.ids import Location
from app.errors import InvalidLocation
from tests.builders.catalogs import new_warehouse
from tests.builders.commits import commit_table
from tests.builders.file_system import identifier, new_table, tree_on

IN_TABLE = "it lies in the folder of a file-system table, .*/tables/ns/t, which is deleted as a whole"


@pytest.fixture
def rows(tmp_path: Path) -> Catalog:
    """A warehouse of rows around one of folders, which has the table `ns.t`."""
    tree = tree_on(tmp_path)
    namespaces.create_namespace(tree, identifier("ns.t").namespace, {})
    named.create(tree, new_table("ns.t"))
    rows = new_warehouse(tree.server, "rows", f"file://{tmp_path}")
    namespaces.create_namespace(rows, identifier("a.b").namespace, {})
    return rows


@pytest.mark.parametrize("place", ["tables/ns/t", "tables/ns/t/", "tables/ns/t/data/x", "link/t/x"])
def test_a_location_in_a_file_system_table_is_refused(rows: Catalog, tmp_path: Path, place: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "tables" / "ns")
    new = new_table("a.b", f"file://{tmp_path}/{place}")
    before = sorted(tmp_path.rglob("*"))

    with pytest.raises(InvalidLocation, match=IN_TABLE):
        named.create(rows, new)
    with pytest.raises(InvalidLocation, match=IN_TABLE):
        tables.stage_table(rows, new)

    assert rows.find(identifier("a.b")) is None
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("place", ["tables/ns/t2", "tables/ns", "tables", "elsewhere"])
def test_a_location_beside_it_or_around_it_is_not(rows: Catalog, tmp_path: Path, place: str) -> None:
    named.create(rows, new_table("a.b", f"file://{tmp_path}/{place}"))

    assert rows.find(identifier("a.b")) is not None


@pytest.mark.parametrize(("namespace", "below"), [("a", "tables/ns/t"), ("ns.t", "tables")])
def test_a_place_that_the_server_chooses_there_is_refused_too(
    rows: Catalog, tmp_path: Path, namespace: str, below: str
) -> None:
    rows = new_warehouse(rows.server, "below", f"file://{tmp_path}/{below}")
    new = new_table(f"{namespace}.b")
    namespaces.create_namespace(rows, new.identifier.namespace, {})

    with pytest.raises(InvalidLocation, match=IN_TABLE):
        named.create(rows, new)
    with pytest.raises(InvalidLocation, match=IN_TABLE):
        tables.stage_table(rows, new)

    assert not list((tmp_path / "tables" / "ns" / "t").glob("[ab]*"))


def test_a_table_in_another_store_does_not_wait_for_a_disk_that_does_not_answer(
    rows: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(location: str) -> str:
        assert not location.startswith("file:")
        return location

    monkeypatch.setattr(tables_of_trees, "real_location", look)

    check_no_table_around(rows.server, "memory://lake/a/b")

    with pytest.raises(AssertionError):
        check_no_table_around(rows.server, f"{rows.warehouse.root_location}/elsewhere")


def test_a_table_does_not_move_there_and_may_stay_there(rows: Catalog, tmp_path: Path) -> None:
    there = Location(f"file://{tmp_path}/tables/ns/t")
    made = named.create(rows, new_table("a.b")).metadata

    with pytest.raises(InvalidLocation, match=IN_TABLE):
        commit_table(rows, identifier("a.b"), [], [SetLocation(location=Location(f"{there}/data"))])

    # As it was made before this was refused.
    file = Location(f"file://{tmp_path}/moved.metadata.json")
    rows.files.write_new(file, made.replace(location=there).to_json())
    named.register(rows, TABLES, identifier("a.b"), file, overwrite=True)
    commit_table(rows, identifier("a.b"), [], [SetLocation(location=there)])
