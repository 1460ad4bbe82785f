"""Names that come, change and go between the plan of a rebuild and its carrying out: nothing is there twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.named import drop, register, rename
from app.catalog.rebuild.carrying_out import carry_out
from app.catalog.rebuild.planning import Action, RebuildPlan, plan_rebuild
from app.database.pointers.pointer import PointerKind
from app.engine.model.identifiers import TableIdentifier
from tests.builders.catalogs import with_server
from tests.builders.tables import DEPARTURES, FLIGHTS, load_table, namespace_in, table_in
from tests.unit.catalog.rebuild.rebuilding import WISH, commit, rebuild, sole

ARRIVALS = TableIdentifier(FLIGHTS, "arrivals")


def tables_of(catalog: Catalog) -> list[TableIdentifier]:
    """Return the names of all tables."""
    pages = catalog.pointers.list_pointers(catalog.warehouse.id, PointerKind.TABLE, 0, 100)
    return [pointer.identifier for pointer in pages]


def failures(catalog: Catalog, plan: RebuildPlan) -> list[str | None]:
    """Carry a plan out, and return why items of it were left."""
    return [outcome.failure for outcome in carry_out(catalog, plan)]


@pytest.fixture
def older(lost: Catalog, found: Catalog) -> Catalog:
    """A catalog whose database is older than storage."""
    table_in(lost)
    commit(lost, 1)
    rebuild(found)
    commit(lost, 2)
    assert sole(plan_rebuild(found, WISH)).action is Action.ADVANCE
    return found


def rename_it(catalog: Catalog) -> None:
    rename(catalog, TABLES, DEPARTURES, ARRIVALS)


def drop_it(catalog: Catalog) -> None:
    drop(catalog, TABLES, DEPARTURES)


@pytest.mark.parametrize(("change", "names"), [(rename_it, [ARRIVALS]), (drop_it, [])])
def test_table_that_was_renamed_or_dropped_since_does_not_come_back_under_its_old_name(
    older: Catalog, change: Callable[[Catalog], None], names: list[TableIdentifier]
) -> None:
    plan = plan_rebuild(older, WISH)
    change(older)

    assert failures(older, plan) == ["Table does not exist: flights.departures"]
    assert tables_of(older) == names


@pytest.mark.parametrize("name", [ARRIVALS, DEPARTURES])
def test_table_that_somebody_has_registered_since_does_not_get_a_second_name(
    lost: Catalog, found: Catalog, name: TableIdentifier
) -> None:
    table_in(lost)
    newest = commit(lost, 1)
    plan = plan_rebuild(found, WISH)
    namespace_in(found)
    register(found, TABLES, name, newest)

    outcomes = carry_out(found, plan)
    assert next(outcomes).failure == f"it is in the catalog as {name} by now"
    if name == DEPARTURES:
        rename_it(found)
    assert [*outcomes] == []
    assert tables_of(found) == [ARRIVALS]


def test_table_that_came_and_went_during_the_search_stays_dropped(found: Catalog) -> None:
    """Files that the search has found may be of a table that was not there when it began."""

    def come(step: str) -> None:
        if step == "rebuild_known":
            table_in(found)

    plan = plan_rebuild(with_server(found, step=come), WISH)
    assert sole(plan).action is Action.ADD
    drop(found, TABLES, DEPARTURES)

    assert failures(found, plan) == ["it has been dropped meanwhile"]
    assert tables_of(found) == []


def test_what_was_not_changed_is_made_beside_what_was(lost: Catalog, found: Catalog) -> None:
    table_in(lost)
    newest = commit(lost, 1)
    table_in(lost, ARRIVALS)
    plan = plan_rebuild(found, WISH)
    namespace_in(found)
    register(found, TABLES, DEPARTURES, newest)

    assert None in failures(found, plan)
    assert tables_of(found) == [DEPARTURES, ARRIVALS]
    assert load_table(found).location == newest
