from __future__ import annotations

from pathlib import Path

import pytest

from app.catalog.exports.writing import export_pointers
from app.catalog.rebuild.planning import Action
from app.fileio.local import LocalFiles
from tests.builders.catalogs import new_warehouse, server_on
from tests.builders.tables import DEPARTURES, table_in
from tests.unit.catalog.rebuild.rebuilding import rebuild


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
