"""What is different in a warehouse at two times."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.listings import Page
from app.catalog.namespaces import create_namespace
from app.catalog.past.catalog_diff import ChangedName, Side, load_catalog_diff
from app.catalog.views import replace_view
from app.engine.change.updates import AddViewVersion, SetCurrentViewVersion, SetProperties, Update
from app.engine.model.data_types.moments import moment_text
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.errors import InvalidRequest
from app.recoveries import InvalidMoment
from tests.builders.tables import (
    FLIGHTS,
    append,
    append_to,
    commit_to,
    snapshot_on,
    table_in,
    view_in,
    view_version,
)


def name(text: str) -> TableIdentifier:
    return TableIdentifier(FLIGHTS, text)


def now(catalog: Catalog) -> str:
    return str(catalog.now_ms())


def names(side_by_side: Sequence[ChangedName]) -> list[tuple[str | None, str | None]]:
    return [tuple_of(each.before, each.after) for each in side_by_side]


def tuple_of(*sides: Side | None) -> tuple[str | None, str | None]:
    before, after = (None if side is None else side.identifier.name for side in sides)
    return before, after


def test_what_came_went_moved_and_changed(catalog: Catalog) -> None:
    for each in ("stays", "goes", "moves", "changes"):
        table_in(catalog, name(each))
    before = now(catalog)
    named.drop(catalog, TABLES, name("goes"))
    named.rename(catalog, TABLES, name("moves"), name("moved"))
    commit_to(catalog, SetProperties(updates={"k": "v"}), identifier=name("changes"))
    view_in(catalog, name("comes"))
    table_in(catalog, name("passes"))
    named.drop(catalog, TABLES, name("passes"))
    create_namespace(catalog, Namespace(("new",)), {"owner": "anna"})

    found = load_catalog_diff(catalog, before, None, Page())

    changed = found.names.items
    assert names(changed) == [("goes", None), ("moves", "moved"), ("changes", "changes"), (None, "comes")]
    assert [each.changes for each in changed] == [(), (), ("properties",), ()]
    assert [str(each.kind) for each in changed] == ["table", "table", "table", "view"]
    assert [(str(each.namespace), each.before, each.after) for each in found.namespaces] == [
        ("new", None, {"owner": "anna"})
    ]
    assert load_catalog_diff(catalog, now(catalog), None, Page()).names.items == []


def test_pages_go_on_where_they_ended(catalog: Catalog) -> None:
    create_namespace(catalog, FLIGHTS, {})
    before = now(catalog)
    for number in range(3):
        table_in(catalog, name(f"t{number}"))

    first = load_catalog_diff(catalog, before, None, Page(limit=2))
    rest = load_catalog_diff(catalog, before, None, Page(first.names.next_after, 2))

    assert names([*first.names.items, *rest.names.items]) == [(None, f"t{number}") for number in range(3)]
    assert rest.names.next_after is None


def test_metadata_that_is_gone_is_marked(catalog: Catalog) -> None:
    old = table_in(catalog, name("t"))
    before = now(catalog)
    append_to(catalog, old)
    assert old.location is not None
    catalog.files.delete(old.location)

    (changed,) = load_catalog_diff(catalog, before, None, Page()).names.items

    assert not changed.is_readable
    assert changed.changes == ()
    assert changed.before is not None
    assert changed.before.rows is None


@pytest.mark.parametrize(
    ("updates", "changes"),
    [
        ([SetProperties(updates={"k": "v"})], ("properties",)),
        (
            [
                AddViewVersion(view_version=view_version("SELECT 2").replace(timestamp_ms=2)),
                SetCurrentViewVersion(view_version_id=-1),
            ],
            ("query",),
        ),
    ],
)
def test_what_of_a_view_is_different(
    catalog: Catalog, updates: Sequence[Update], changes: tuple[str, ...]
) -> None:
    view_in(catalog, name("v"))
    before = now(catalog)
    replace_view(catalog, name("v"), (), updates)

    (changed,) = load_catalog_diff(catalog, before, None, Page()).names.items

    assert (changed.changes, changed.is_readable) == (changes, True)


def test_view_whose_metadata_is_gone_is_marked(catalog: Catalog) -> None:
    old = view_in(catalog, name("v"))
    before = now(catalog)
    replace_view(catalog, name("v"), (), [SetProperties(updates={"k": "v"})])
    assert old.location is not None
    catalog.files.delete(old.location)

    (changed,) = load_catalog_diff(catalog, before, None, Page()).names.items

    assert (changed.changes, changed.is_readable) == ((), False)


@pytest.mark.parametrize("total", ["9" * 25, "9" * 5000, "many"])
def test_totals_that_are_no_counts_are_not_known(catalog: Catalog, total: str) -> None:
    table = table_in(catalog, name("t"))
    before = now(catalog)
    snapshot = snapshot_on(table.metadata)
    commit_to(
        catalog,
        *append(snapshot.replace(summary={"operation": "append", "total-records": total})),
        identifier=name("t"),
    )

    (changed,) = load_catalog_diff(catalog, before, None, Page()).names.items

    assert changed.after is not None
    assert (changed.after.snapshot_id, changed.after.rows) == (snapshot.snapshot_id, None)


def test_times_that_make_no_sense(catalog: Catalog) -> None:
    early, late = now(catalog), now(catalog)

    with pytest.raises(InvalidRequest, match="from"):
        load_catalog_diff(catalog, None, late, Page())
    with pytest.raises(InvalidMoment, match=rf"{moment_text(int(late))} is after {moment_text(int(early))}"):
        load_catalog_diff(catalog, late, early, Page())
