from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.exports.writing import export_pointers
from app.catalog.rebuild.planning import Action
from app.fileio.local import LocalFiles
from tests.builders.catalogs import new_warehouse, server_on
from tests.builders.tables import DEPARTURES, load_table, table_in
from tests.unit.catalog.commits.interference import ARRIVALS
from tests.unit.catalog.rebuild.rebuilding import commit, rebuild


@pytest.mark.parametrize("root", ["", "/flights"])
def test_tables_of_another_warehouse_are_left_to_it(tmp_path: Path, root: str) -> None:
    one = new_warehouse(server_on(f"sqlite:///{tmp_path}/a.db", LocalFiles()), "one", f"file://{tmp_path}/wh")
    table_in(one)
    two = new_warehouse(one.server, "two", f"file://{tmp_path}/wh{root}")

    plan = rebuild(two)

    (item,) = plan.items
    assert item.action is Action.LEAVE
    assert f"table {DEPARTURES} of warehouse one is the same table" in (item.reason or "")
    assert not plan.has_changes


def test_twin_that_an_export_names_comes_back_and_is_said(tmp_path: Path) -> None:
    lost = new_warehouse(
        server_on(f"sqlite:///{tmp_path}/a.db", LocalFiles()), "one", f"file://{tmp_path}/wh"
    )
    table_in(lost)
    export_pointers(lost.server, lost.warehouse)
    server = server_on(f"sqlite:///{tmp_path}/b.db", LocalFiles())
    rebuild(new_warehouse(server, "two", f"file://{tmp_path}/wh"))

    plan = rebuild(new_warehouse(server, "one", f"file://{tmp_path}/wh"))

    (item,) = plan.of(Action.ADD)
    assert "of warehouse two is the same table" in (item.reason or "")


@pytest.mark.parametrize("let_go", [named.drop, named.unregister, None])
def test_what_another_name_has_committed_moves_no_pointer_of_a_database_that_knows_it(
    lost: Catalog, let_go: Callable[..., object] | None
) -> None:
    table_in(lost)
    own = commit(lost, 1)
    named.register(lost, TABLES, ARRIVALS, own)
    commit(lost, 2, ARRIVALS)
    last = commit(lost, 3, ARRIVALS)
    if let_go is not None:
        let_go(lost, TABLES, ARRIVALS)

    (item,) = (each for each in rebuild(lost).items if each.identifier == DEPARTURES)

    assert load_table(lost).location == own
    assert item.action is Action.LEAVE
    assert item.reason is not None
    assert f"{last} was committed under another name of this table: if that name was let go" in item.reason
