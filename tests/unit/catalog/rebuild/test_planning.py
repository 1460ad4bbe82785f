from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.exports.writing import export_pointers
from app.catalog.rebuild.carrying_out import carry_out
from app.catalog.rebuild.known_pointers import NamedBy
from app.catalog.rebuild.planning import Action, plan_rebuild
from app.database.warehouses import Layout
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location
from app.errors import FilesUnavailable, InvalidRequest, NotAllowed
from app.fileio.local import LocalFiles
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import (
    CALLER,
    new_warehouse,
    server_on,
    with_server,
    with_warehouse,
)
from tests.builders.tables import (
    DEPARTURES,
    FLIGHTS,
    load_table,
    namespace_in,
    table_in,
    view_in,
)
from tests.unit.catalog.rebuild.rebuilding import WISH, commit, rebuild, sole

ARRIVALS = TableIdentifier(FLIGHTS, "arrivals")


def rewritten(store: MemoryFiles, location: Location, target: str, **changes: Any) -> Location:
    """Copy a metadata file to another place, with changes: None removes a field."""
    document = json.loads(store.read(location)) | {
        key.replace("_", "-"): text for key, text in changes.items()
    }
    document = {key: text for key, text in document.items() if text is not None}
    store.write_new(Location(target), json.dumps(document).encode())
    return Location(target)


def test_nothing_is_changed_by_a_plan(lost: Catalog, found: Catalog) -> None:
    table_in(lost)

    assert sole(plan_rebuild(found, WISH)).action is Action.ADD
    assert found.find(DEPARTURES) is None
    assert found.namespaces.find(found.warehouse.id, FLIGHTS) is None


def test_tables_and_views_come_back_under_the_names_in_their_paths(lost: Catalog, found: Catalog) -> None:
    table_in(lost)
    newest = commit(lost, 1)
    view = view_in(lost, ARRIVALS)

    plan = rebuild(found)

    assert {item.named_by for item in plan.items} == {NamedBy.PATH}
    assert load_table(found).location == newest
    assert named.load(found, TABLES, DEPARTURES).metadata.properties["n"] == "1"
    pointer = found.find(ARRIVALS)
    assert pointer is not None
    assert (pointer.kind, pointer.metadata_location) == ("view", view.location)
    (event, *_) = found.pointers.history(pointer.id)
    assert (event.event, event.author) == ("rebuilt", CALLER.principal)


def test_rebuilding_again_does_nothing(lost: Catalog, found: Catalog) -> None:
    table_in(lost)
    rebuild(found)

    again = rebuild(found)

    assert sole(again).action is Action.KEEP
    assert again.namespaces == {}


def test_a_rebuilt_table_takes_commits(lost: Catalog, found: Catalog) -> None:
    table_in(lost)
    rebuild(found)

    commit(found, 7)

    assert load_table(found).metadata.properties["n"] == "7"
    assert sole(plan_rebuild(found, WISH)).action is Action.KEEP


def test_an_older_database_is_moved_forward_and_never_back(
    lost: Catalog, found: Catalog, store: MemoryFiles
) -> None:
    table_in(lost)
    rebuild(found)
    newest = [commit(lost, number) for number in range(4)][-1]

    item = sole(rebuild(found))
    assert (item.action, item.location) == (Action.ADVANCE, newest)
    assert load_table(found).location == newest

    # What is not there any more cannot take it back.
    store.delete(newest)
    assert sole(plan_rebuild(found, WISH)).action is Action.LEAVE
    assert found.find(DEPARTURES) is not None


def test_a_pointer_that_moved_after_the_plan_is_left(lost: Catalog, found: Catalog) -> None:
    table_in(lost)
    rebuild(found)
    commit(lost, 1)
    plan = plan_rebuild(found, WISH)
    own = commit(found, 2)

    (outcome,) = carry_out(found, plan)

    assert outcome.failure is not None
    assert load_table(found).location == own


def test_names_and_properties_come_from_the_newest_export(lost: Catalog, found: Catalog) -> None:
    namespace_in(lost)
    lost.namespaces.create(lost.warehouse.id, Namespace(("quiet",)), {"owner": "anna"}, lost.author())
    table_in(lost)
    export_pointers(lost.server, lost.warehouse)
    named.rename(lost, TABLES, DEPARTURES, ARRIVALS)
    location = export_pointers(lost.server, lost.warehouse)

    plan = rebuild(found)

    assert plan.export == location
    assert sole(plan).named_by is NamedBy.EXPORT
    assert load_table(found, ARRIVALS).location == load_table(lost, ARRIVALS).location
    assert found.namespaces.find(found.warehouse.id, Namespace(("quiet",))) == {"owner": "anna"}


def test_table_of_another_catalog_stays_read_only(lost: Catalog, found: Catalog) -> None:
    location = table_in(lost).location
    assert location is not None
    table_in(lost, ARRIVALS)
    named.drop(lost, TABLES, DEPARTURES)
    named.register(lost, TABLES, DEPARTURES, location, read_only=True)
    export_pointers(lost.server, lost.warehouse)

    rebuild(found)

    assert {name: there.is_read_only for name in (DEPARTURES, ARRIVALS) if (there := found.find(name))} == {
        DEPARTURES: True,
        ARRIVALS: False,
    }
    with pytest.raises(NotAllowed, match="read-only"):
        commit(found, 1)


def test_what_was_dropped_before_the_export_is_left_unless_asked_for(lost: Catalog, found: Catalog) -> None:
    lost = with_warehouse(lost, default_properties={"icetower.undrop.keep-ms": "0"})
    table_in(lost)
    named.drop(lost, TABLES, DEPARTURES)
    table_in(lost, ARRIVALS)
    export_pointers(lost.server, lost.warehouse)

    left = {item.identifier: item for item in rebuild(found).items}

    assert left[DEPARTURES].action is Action.LEAVE
    assert "not in the export" in str(left[DEPARTURES].reason)
    assert found.find(DEPARTURES) is None
    rebuild(found, replace(WISH, takes_dropped=True))
    assert found.find(DEPARTURES) is not None


def test_of_two_tables_that_claim_one_name_neither_gets_it(lost: Catalog, found: Catalog) -> None:
    first = table_in(lost)
    named.drop(lost, TABLES, DEPARTURES)
    second = table_in(lost)

    items = rebuild(found).items

    assert {item.identifier.name for item in items} == {
        f"departures_{table.metadata.uuid[:8]}" for table in (first, second)
    }
    assert {item.location for item in items} == {first.location, second.location}


def test_the_way_back_is_remembered_by_the_export(lost: Catalog, found: Catalog) -> None:
    first = table_in(lost).location
    assert first is not None
    commit(lost, 1)
    commit(lost, 2)
    named.register(lost, TABLES, DEPARTURES, first, overwrite=True)
    export_pointers(lost.server, lost.warehouse)

    rebuild(found)

    assert load_table(found).location == first


@pytest.mark.parametrize("lets_go", ["drop", "unregister"])
@pytest.mark.parametrize("is_backup", [False, True])
def test_the_way_back_under_a_new_entry_is_remembered(
    lost: Catalog, found: Catalog, lets_go: str, is_backup: bool
) -> None:
    first = table_in(lost).location
    assert first is not None
    commit(lost, 1)
    commit(lost, 2)
    getattr(named, lets_go)(lost, TABLES, DEPARTURES)
    named.register(lost, TABLES, DEPARTURES, first)
    export_pointers(lost.server, lost.warehouse)

    rebuilt = lost if is_backup else found
    rebuild(rebuilt)

    assert load_table(rebuilt).location == first


def test_another_spelling_of_where_a_table_is_keeps_no_later_commit_away(tmp_path: Path) -> None:
    """As where another catalog gives the table back: `file:/x` is `file:///x`."""
    lost, found = (
        new_warehouse(
            server_on(f"sqlite:///{tmp_path}/{name}.db", LocalFiles()), root=f"file://{tmp_path}/wh"
        )
        for name in ("lost", "found")
    )
    table_in(lost)
    last = commit(lost, 1)
    named.unregister(lost, TABLES, DEPARTURES)
    named.register(lost, TABLES, DEPARTURES, last.replace("file:///", "file:/"))
    export_pointers(lost.server, lost.warehouse)
    newest = commit(lost, 2)

    rebuild(found)

    assert load_table(found).location == newest


def test_two_names_of_one_table_go_their_own_ways(lost: Catalog, found: Catalog) -> None:
    first = table_in(lost).location
    assert first is not None
    commit(lost, 1)
    named.register(lost, TABLES, ARRIVALS, first)
    commit(lost, 2, ARRIVALS)
    export_pointers(lost.server, lost.warehouse)
    newest = [commit(lost, 3), commit(lost, 4, ARRIVALS)]

    rebuild(found)

    assert [load_table(found, name).location for name in (DEPARTURES, ARRIVALS)] == newest


def test_a_loser_with_a_higher_number_is_not_taken(lost: Catalog, found: Catalog, store: MemoryFiles) -> None:
    first = table_in(lost).location
    assert first is not None
    second = commit(lost, 1)
    newest = commit(lost, 2)
    folder = newest.rpartition("/")[0]
    loser = rewritten(store, second, f"{folder}/00009-ffffffff-0000-4000-8000-000000000000.metadata.json")

    item = sole(rebuild(found))

    assert item.location == newest != loser


def test_what_is_only_likely_is_left_unless_asked_for(
    lost: Catalog, found: Catalog, store: MemoryFiles
) -> None:
    table_in(lost)
    newest = commit(lost, 1)
    other = rewritten(
        store,
        newest,
        newest.replace("/00001-", "/00001-f"),
        last_updated_ms=load_table(lost).metadata.last_updated_ms + 1,
    )

    item = sole(rebuild(found))
    assert (item.action, item.location, item.others) == (Action.LEAVE, other, (newest,))
    assert found.find(DEPARTURES) is None

    rebuild(found, replace(WISH, takes_likely=True))
    assert load_table(found).location == other


def test_equal_evidence_is_reported_and_never_taken(
    lost: Catalog, found: Catalog, store: MemoryFiles
) -> None:
    table_in(lost)
    newest = commit(lost, 1)
    other = rewritten(store, newest, newest.replace("/00001-", "/00001-f"))

    item = sole(rebuild(found, replace(WISH, takes_likely=True)))

    assert (item.action, item.location) == (Action.LEAVE, None)
    assert set(item.others) == {newest, other}


def test_a_copied_folder_is_reported_as_such(lost: Catalog, found: Catalog, store: MemoryFiles) -> None:
    location = table_in(lost).location
    assert location is not None
    rewritten(store, location, f"memory://wh/copy/of/it/metadata/{location.rpartition('/')[2]}")

    plan = rebuild(found)

    assert sorted(item.action for item in plan.items) == [Action.ADD, Action.LEAVE]
    (left,) = plan.of(Action.LEAVE)
    assert "rewrite_table_path" in str(left.reason)
    assert load_table(found).location == location


@pytest.mark.parametrize("content", [b"", b"{", b'{"format-version": 9}', b"\x1f\x8bnot gzip"])
def test_an_unreadable_file_beside_the_newest_leaves_a_doubt(
    lost: Catalog, found: Catalog, store: MemoryFiles, content: bytes
) -> None:
    newest = table_in(lost).location
    assert newest is not None
    damaged = Location(newest.replace("/00000-", "/00001-"))
    store.write_new(damaged, content)

    plan = rebuild(found)

    assert [each.location for each in plan.found.unreadable] == [damaged]
    assert sole(plan).action is Action.LEAVE
    assert damaged in str(sole(plan).reason)
    rebuild(found, replace(WISH, takes_likely=True))
    assert load_table(found).location == newest


def test_a_table_of_version_1_without_a_uuid_comes_back(
    lost: Catalog, found: Catalog, store: MemoryFiles
) -> None:
    location = table_in(lost, properties={"format-version": "1"}).location
    assert location is not None
    store_as = Location(location.replace("/00000-", "/00001-"))
    rewritten(store, location, store_as, table_uuid=None)
    store.delete(location)
    named.drop(lost, TABLES, DEPARTURES)

    item = sole(rebuild(found))

    assert (item.action, item.uuid, item.location) == (Action.ADD, "", store_as)
    assert sole(plan_rebuild(found, WISH)).action is Action.KEEP


def test_tables_without_a_catalog_go_by_their_version(
    lost: Catalog, found: Catalog, store: MemoryFiles
) -> None:
    location = table_in(lost).location
    assert location is not None
    for number in (2, 10, 9):
        rewritten(store, location, f"{location.rpartition('/')[0]}/v{number}.metadata.json")
    store.delete(location)

    rebuild(found)

    assert load_table(found).location == f"{location.rpartition('/')[0]}/v10.metadata.json"


def test_a_store_that_fails_half_way_changes_nothing(
    lost: Catalog, found: Catalog, store: MemoryFiles
) -> None:
    table_in(lost)

    class Failing(MemoryFiles):
        list_files = store.list_files

        def read(self, location: Location) -> bytes:
            raise FilesUnavailable(f"no answer for {location}")

    with pytest.raises(FilesUnavailable):
        plan_rebuild(with_server(found, files_of=lambda _warehouse: Failing()), WISH)
    assert found.find(DEPARTURES) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda _content: b"no gzip",
        lambda _content: b"",
    ],
)
def test_a_damaged_export_is_refused_by_name_and_passed_over_otherwise(
    lost: Catalog, found: Catalog, store: MemoryFiles, damage: Callable[[bytes], bytes]
) -> None:
    table_in(lost)
    whole = export_pointers(lost.server, lost.warehouse)
    assert whole is not None
    newer = Location(whole.replace("/pointers/wh/0", "/pointers/wh/9"))
    store.write_new(newer, damage(store.read(whole)))

    with pytest.raises(InvalidRequest):
        plan_rebuild(found, replace(WISH, export=newer))
    assert plan_rebuild(found, WISH).export == whole


def test_a_table_that_moves_on_while_files_are_listed_is_left(
    lost: Catalog, store: MemoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    table_in(lost)
    commit(lost, 1)
    listed = list(store.list_files(Location(lost.warehouse.root_location)))
    commit(lost, 2)
    monkeypatch.setattr(store, "list_files", lambda _prefix: iter(listed))

    item = sole(plan_rebuild(lost, WISH))

    assert item.action is Action.LEAVE
    assert item.reason == "its pointer has been there before, and the file that it names now is there"


def test_a_pointer_whose_files_are_all_gone_is_reported(lost: Catalog, store: MemoryFiles) -> None:
    location = table_in(lost).location
    assert location is not None
    store.delete(location)

    item = sole(plan_rebuild(lost, WISH))

    assert item.action is Action.LEAVE
    assert "gone" in str(item.reason)


@pytest.mark.parametrize("known_by", ["database", "export", "nothing"])
@pytest.mark.parametrize("layout", Layout)
def test_tables_of_a_warehouse_inside_another_one_are_left_to_it(
    tmp_path: Path, known_by: str, layout: Layout
) -> None:
    lost = new_warehouse(
        server_on(f"sqlite:///{tmp_path}/lost.db", LocalFiles()), "wh", f"file://{tmp_path}/wh"
    )
    table_in(lost)
    inner = new_warehouse(lost.server, "inner", f"file://{tmp_path}/wh/inner", layout=layout)
    table_in(inner)
    if known_by == "export":
        export_pointers(lost.server, lost.warehouse)
    found = new_warehouse(
        server_on(f"sqlite:///{tmp_path}/found.db", LocalFiles()), "wh", lost.warehouse.root_location
    )
    if known_by == "database":
        new_warehouse(found.server, "inner", inner.warehouse.root_location, layout=layout)

    plan = rebuild(found)

    items = {str(item.identifier): item for item in plan.items}
    assert items["flights.departures"].action is Action.ADD
    other = items["inner.flights.departures"]
    if known_by == "nothing":
        assert other.action is Action.ADD
    else:
        assert other.action is Action.LEAVE
        assert f"is inside warehouse inner, at {inner.warehouse.root_location}" in (other.reason or "")
