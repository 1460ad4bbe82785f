"""Bringing back what was dropped, and what is protected from drops."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from app.catalog import named, tables
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, VIEWS, Kind
from app.catalog.context.listings import Page
from app.catalog.namespaces import create_namespace, drop_namespace, update_namespace_properties
from app.catalog.past.dropped import NewName, Wanted, list_dropped, purge_dropped, undrop
from app.catalog.warehouses import drop_warehouse, load_configuration
from app.database.dropped import DroppedThings
from app.database.pointers.pointer import Pointer
from app.database.pointers.pointers import Pointers
from app.engine.change.updates import SetProperties
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location, TableUuid
from app.engine.model.table_metadata import TableMetadata
from app.errors import FilesUnavailable, InvalidRequest, NoSuchNamespace, NoSuchWarehouse, PurgeRefused
from app.recoveries import NoSuchDropped, PastIsGone, Protected, UndropRefused
from tests.builders.catalogs import with_server, with_warehouse
from tests.builders.tables import DEPARTURES, FLIGHTS, append_to, commit_to, load_table, table_in, view_in

NAMED = Wanted(namespace=FLIGHTS, name=DEPARTURES.name)
DAY_MS = 24 * 3_600_000


def keeping(catalog: Catalog, **properties: str) -> Catalog:
    spelled = {f"icetower.undrop.{name.replace('_', '-')}": text for name, text in properties.items()}
    return with_warehouse(catalog, default_properties=spelled)


def replace_file(catalog: Catalog, metadata: TableMetadata, location: Location) -> None:
    catalog.files.delete(location)
    catalog.files.write_new(location, metadata.to_json())


def ids(catalog: Catalog) -> list[int]:
    return [entry.id for entry in list_dropped(catalog, Page()).items]


def test_table_comes_back_as_it_was(catalog: Catalog) -> None:
    append_to(catalog, table_in(catalog, properties={"k": "v"}))
    before = load_table(catalog)
    named.drop(catalog, TABLES, DEPARTURES)

    answer = undrop(catalog, NAMED)

    assert load_table(catalog) == before
    assert answer == {
        "id": 1,
        "kind": "table",
        "namespace": ["flights"],
        "name": "departures",
        "metadata-location": before.location,
    }
    assert ids(catalog) == []


def test_view_and_namespace_come_back(catalog: Catalog) -> None:
    view_in(catalog)
    before = named.load(catalog, VIEWS, DEPARTURES)
    update_namespace_properties(catalog, FLIGHTS, [], {"owner": "anna"})
    named.drop(catalog, VIEWS, DEPARTURES)
    drop_namespace(catalog, FLIGHTS)

    undrop(catalog, Wanted(namespace=FLIGHTS))
    undrop(catalog, NAMED)

    assert catalog.load_namespace(FLIGHTS) == {"owner": "anna"}
    assert named.load(catalog, VIEWS, DEPARTURES) == before


def test_missing_namespace_is_made_with_what_it_had(catalog: Catalog) -> None:
    table_in(catalog)
    update_namespace_properties(catalog, FLIGHTS, [], {"owner": "anna"})
    named.drop(catalog, TABLES, DEPARTURES)
    drop_namespace(catalog, FLIGHTS)

    with pytest.raises(NoSuchNamespace, match="create-namespace"):
        undrop(catalog, NAMED)
    undrop(catalog, NAMED, NewName(with_namespace=True))

    assert catalog.load_namespace(FLIGHTS) == {"owner": "anna"}


@pytest.mark.parametrize("brings_table", [True, False])
def test_namespaces_above_come_back_with_what_they_had(catalog: Catalog, *, brings_table: bool) -> None:
    outer, inner, innermost = (Namespace(("a", "b", "c")[:length]) for length in (1, 2, 3))
    for namespace in (outer, inner, innermost):
        create_namespace(catalog, namespace, {"owner": str(namespace)})
    identifier = TableIdentifier(innermost, "t")
    table_in(catalog, identifier)
    named.drop(catalog, TABLES, identifier)
    for namespace in (innermost, inner, outer):
        drop_namespace(catalog, namespace)
    create_namespace(catalog, outer, {"owner": "another"})

    if brings_table:
        undrop(catalog, Wanted(namespace=innermost, name="t"), NewName(with_namespace=True))
    else:
        undrop(catalog, Wanted(namespace=innermost))

    assert catalog.load_namespace(outer) == {"owner": "another"}
    assert catalog.load_namespace(inner) == {"owner": "a.b"}
    assert catalog.load_namespace(innermost) == {"owner": "a.b.c"}


@pytest.mark.parametrize("brings_table", [True, False])
def test_namespaces_that_go_meanwhile_come_back_with_what_they_had(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, *, brings_table: bool
) -> None:
    outer, inner = Namespace(("a",)), Namespace(("a", "b"))
    for namespace in (outer, inner):
        create_namespace(catalog, namespace, {"owner": str(namespace)})
    if brings_table:
        table_in(catalog, TableIdentifier(inner, "t"))
        named.drop(catalog, TABLES, TableIdentifier(inner, "t"))
    else:
        drop_namespace(catalog, inner)

    way_back = "undrop" if brings_table else "undrop_namespace"
    transaction = getattr(DroppedThings, way_back)

    def undrop_later(*arguments: Any, **named_arguments: Any) -> Any:
        for namespace in (inner, outer) if brings_table else (outer,):
            drop_namespace(catalog, namespace)
        return transaction(*arguments, **named_arguments)

    monkeypatch.setattr(DroppedThings, way_back, undrop_later)
    wanted = Wanted(namespace=inner, name="t" if brings_table else None)
    undrop(catalog, wanted, NewName(with_namespace=brings_table))

    assert catalog.load_namespace(outer) == {"owner": "a"}
    assert catalog.load_namespace(inner) == {"owner": "a.b"}


def test_latest_of_a_name_comes_back_and_any_by_its_id(catalog: Catalog) -> None:
    uuids = []
    for _ in range(3):
        uuids.append(table_in(catalog).metadata.uuid)
        named.drop(catalog, TABLES, DEPARTURES)
    assert ids(catalog) == [3, 2, 1]

    undrop(catalog, NAMED)
    assert load_table(catalog).metadata.uuid == uuids[2]
    undrop(catalog, Wanted(id=1), NewName(name="first"))
    assert load_table(catalog, TableIdentifier(FLIGHTS, "first")).metadata.uuid == uuids[0]

    with pytest.raises(UndropRefused, match="id 2, a table dropped by tester"):
        undrop(catalog, Wanted(id=2))
    assert ids(catalog) == [2]


def test_pages_and_filters(catalog: Catalog) -> None:
    for _ in range(3):
        table_in(catalog)
        named.drop(catalog, TABLES, DEPARTURES)
    drop_namespace(catalog, FLIGHTS)

    first = list_dropped(catalog, Page(limit=2))
    assert [entry.kind for entry in first.items] == ["namespace", "table"]
    rest = list_dropped(catalog, Page(after=first.next_after, limit=2))
    assert ([entry.id for entry in rest.items], rest.next_after) == ([2, 1], None)
    only = list_dropped(catalog, Page(), namespace=FLIGHTS, name=DEPARTURES.name)
    assert [entry.id for entry in only.items] == [3, 2, 1]
    assert [entry.kind for entry in list_dropped(catalog, Page(), namespace=FLIGHTS).items] == ["namespace"]


@pytest.mark.parametrize(
    "wanted", [NAMED, Wanted(id=7), Wanted(namespace=FLIGHTS), Wanted(namespace=FLIGHTS, name="x")]
)
def test_what_is_not_there_cannot_come_back(catalog: Catalog, wanted: Wanted) -> None:
    table_in(catalog)

    with pytest.raises(NoSuchDropped, match="can come back"):
        undrop(catalog, wanted)
    with pytest.raises(NoSuchDropped):
        purge_dropped(catalog, wanted)


def test_namespace_does_not_become_a_table(catalog: Catalog) -> None:
    create_namespace(catalog, FLIGHTS, {})
    drop_namespace(catalog, FLIGHTS)

    with pytest.raises(InvalidRequest):
        undrop(catalog, Wanted(namespace=FLIGHTS), NewName(name="t"))


def test_registered_again_it_stays_away(catalog: Catalog) -> None:
    location = table_in(catalog).location
    named.drop(catalog, TABLES, DEPARTURES)
    assert location is not None
    named.register(catalog, TABLES, TableIdentifier(FLIGHTS, "again"), location)

    with pytest.raises(UndropRefused, match=r"flights\.again has the same table uuid"):
        undrop(catalog, NAMED)


def test_time_that_is_kept_is_the_warehouses(catalog: Catalog) -> None:
    short = keeping(catalog, keep_ms=str(DAY_MS))
    table_in(short)
    named.drop(short, TABLES, DEPARTURES)
    (entry,) = list_dropped(catalog, Page()).items
    assert entry.until_ms - entry.dropped_ms == DAY_MS

    never = keeping(catalog, keep_ms="0")
    table_in(never, TableIdentifier(FLIGHTS, "u"))
    named.drop(never, TABLES, TableIdentifier(FLIGHTS, "u"))
    assert ids(catalog) == [entry.id]


def test_purge_goes_at_once_unless_it_waits(catalog: Catalog) -> None:
    table_in(catalog)
    tables.purge_table(catalog, DEPARTURES)
    assert ids(catalog) == []
    assert catalog.server.file_deletions.counts() == {"queued": 1}
    assert load_configuration(catalog)[1] == {}

    waiting = keeping(catalog, purge_waits="true")
    table_in(waiting)
    tables.purge_table(waiting, DEPARTURES)
    assert catalog.server.file_deletions.counts() == {"queued": 1}
    assert load_configuration(waiting)[1] == {"s3.delete-enabled": "false"}
    undrop(waiting, NAMED)
    tables.purge_table(waiting, DEPARTURES)
    catalog.server.dropped.end(catalog.now_ms() + 8 * DAY_MS)
    assert catalog.server.file_deletions.counts() == {"queued": 2}


def test_explicit_purge(catalog: Catalog) -> None:
    for _ in range(2):
        table_in(catalog)
        named.drop(catalog, TABLES, DEPARTURES)

    with pytest.raises(UndropRefused, match="choose one by its id"):
        purge_dropped(catalog, NAMED)
    assert purge_dropped(catalog, Wanted(id=1))["kind"] == "table"
    assert ids(catalog) == [2]
    assert catalog.server.file_deletions.counts() == {"queued": 1}


def test_files_that_may_be_others_are_not_purged(catalog: Catalog) -> None:
    table_in(catalog, properties={"gc.enabled": "false"})
    named.drop(catalog, TABLES, DEPARTURES)

    with pytest.raises(PurgeRefused):
        purge_dropped(catalog, NAMED)
    assert ids(catalog) == [1]


def test_protected_table_is_not_dropped_purged_renamed_or_replaced(catalog: Catalog) -> None:
    location = table_in(catalog, properties={"icetower.protected": "true"}).location
    elsewhere = TableIdentifier(FLIGHTS, "elsewhere")
    assert location is not None

    for deed in (
        lambda: named.drop(catalog, TABLES, DEPARTURES),
        lambda: tables.purge_table(catalog, DEPARTURES),
        lambda: named.unregister(catalog, TABLES, DEPARTURES),
        lambda: named.rename(catalog, TABLES, DEPARTURES, elsewhere),
        lambda: named.register(catalog, TABLES, DEPARTURES, location, overwrite=True),
    ):
        with pytest.raises(Protected, match=r"icetower\.protected is on for it"):
            deed()

    commit_to(catalog, SetProperties(updates={"icetower.protected": "false"}))
    named.drop(catalog, TABLES, DEPARTURES)


@pytest.mark.parametrize("kind", [TABLES, VIEWS], ids=str)
def test_what_was_unregistered_is_said_to_be_registered_again(catalog: Catalog, kind: Kind[Any]) -> None:
    (table_in if kind is TABLES else view_in)(catalog)
    location = named.unregister(catalog, kind, DEPARTURES).location
    said = f"{kind} {DEPARTURES} was not dropped but unregistered .* register its metadata file: {location}"

    with pytest.raises(NoSuchDropped, match=said):
        undrop(catalog, NAMED)
    with pytest.raises(NoSuchDropped, match="it was never dropped here"):
        undrop(catalog, Wanted(namespace=FLIGHTS, name="another"))
    assert location is not None
    named.register(catalog, kind, DEPARTURES, location)
    with pytest.raises(NoSuchDropped, match="it was never dropped here"):
        undrop(catalog, NAMED)


class _Beaten(Pointers):
    """Pointers of which one is moved by somebody else just before it is renamed."""

    def __init__(self, pointers: Pointers, rival: Callable[[], object]) -> None:
        super().__init__(pointers._database)
        self._rivals = [rival]

    def rename(self, *arguments: Any, **options: Any) -> Pointer | None:
        if self._rivals:
            self._rivals.pop()()
        return super().rename(*arguments, **options)


@pytest.mark.parametrize("value", ["true", "false"])
def test_table_that_is_protected_while_it_is_renamed_keeps_its_name(catalog: Catalog, value: str) -> None:
    table_in(catalog)
    elsewhere = TableIdentifier(FLIGHTS, "elsewhere")
    change = SetProperties(updates={"icetower.protected": value})
    pointers = _Beaten(catalog.server.pointers, lambda: commit_to(catalog, change))
    beaten = with_server(catalog, pointers=pointers)

    if value == "true":
        with pytest.raises(Protected):
            named.rename(beaten, TABLES, DEPARTURES, elsewhere)
    else:
        named.rename(beaten, TABLES, DEPARTURES, elsewhere)

    kept = load_table(catalog, DEPARTURES if value == "true" else elsewhere)
    assert kept.metadata.properties["icetower.protected"] == value


def test_nearest_place_decides_what_is_protected(catalog: Catalog) -> None:
    safe = with_warehouse(catalog, default_properties={"icetower.protected": "true"})
    create_namespace(safe, FLIGHTS, {})
    with pytest.raises(Protected, match=r"for warehouse wh.*update wh --default icetower\.protected=false"):
        drop_namespace(safe, FLIGHTS)
    overriding = with_warehouse(catalog, override_properties={"icetower.protected": "true"})
    with pytest.raises(Protected, match=r"update wh --override icetower\.protected=false"):
        drop_namespace(overriding, FLIGHTS)
    update_namespace_properties(safe, FLIGHTS, [], {"icetower.protected": "false"})
    drop_namespace(safe, FLIGHTS)
    create_namespace(catalog, FLIGHTS, {"icetower.protected": "true"})
    view_in(catalog)
    with pytest.raises(
        Protected,
        match=r"for namespace flights.*namespace set flights --warehouse wh icetower\.protected=false",
    ):
        named.drop(catalog, VIEWS, DEPARTURES)


@pytest.mark.parametrize("value", ["yes", "1", " TRUE ", ""])
def test_protection_that_makes_no_sense_protects(catalog: Catalog, value: str) -> None:
    """It was set before it was checked, or elsewhere: nothing may be lost."""
    table_in(catalog)
    safe = with_warehouse(catalog, default_properties={"icetower.protected": value})

    with pytest.raises(Protected, match=r"icetower\.protected is on for warehouse wh"):
        named.drop(safe, TABLES, DEPARTURES)


def test_protected_warehouse_stays(catalog: Catalog) -> None:
    server, caller = catalog.server, catalog.caller
    server.warehouses.create(
        "safe", "memory://safe", default_properties={"icetower.protected": "true"}, created_ms=1
    )

    with pytest.raises(Protected, match="Cannot drop warehouse safe"):
        drop_warehouse(server, caller, "safe")


def test_table_whose_metadata_is_gone_can_be_dropped_and_cannot_come_back(catalog: Catalog) -> None:
    location = table_in(catalog).location
    assert location is not None
    catalog.files.delete(location)

    named.drop(catalog, TABLES, DEPARTURES)

    with pytest.raises(FilesUnavailable, match="as if its disk were not mounted"):
        undrop(catalog, NAMED)
    catalog.files.write_new(Location(f"{catalog.warehouse.root_location}/another/file"), b"")
    with pytest.raises(PastIsGone, match="has been deleted"):
        undrop(catalog, NAMED)
    assert ids(catalog) == [1]


@pytest.mark.parametrize("read_only", [False, True])
def test_registered_table_comes_back_only_as_what_it_was(catalog: Catalog, *, read_only: bool) -> None:
    """The file may have been edited meanwhile, or another table made in its place: no server believes what it keeps."""
    made = table_in(catalog)
    assert made.location is not None
    named.drop(catalog, TABLES, DEPARTURES)
    named.register(catalog, TABLES, DEPARTURES, made.location, read_only=read_only)
    before = catalog.load(TABLES, DEPARTURES)
    named.drop(catalog, TABLES, DEPARTURES)
    replace_file(catalog, made.metadata.replace(properties={"edited": "yes"}), made.location)

    undrop(catalog, NAMED)

    after = catalog.load(TABLES, DEPARTURES)
    assert after.registration != before.registration
    assert after.is_read_only is read_only
    assert load_table(catalog).metadata.properties["edited"] == "yes"
    named.drop(catalog, TABLES, DEPARTURES)
    replace_file(catalog, made.metadata.replace(table_uuid=TableUuid(str(uuid.uuid4()))), made.location)
    with pytest.raises(PastIsGone, match=r"cannot come back: .* is there by now"):
        undrop(catalog, NAMED)


def test_what_was_dropped_is_not_purged_where_all_is_protected(catalog: Catalog) -> None:
    table_in(catalog)
    view_in(catalog, TableIdentifier(FLIGHTS, "v"))
    named.drop(catalog, TABLES, DEPARTURES)
    named.drop(catalog, VIEWS, TableIdentifier(FLIGHTS, "v"))
    drop_namespace(catalog, FLIGHTS)
    safe = with_warehouse(catalog, default_properties={"icetower.protected": "true"})

    for dropped_id, kind in enumerate(("table", "view", "namespace"), 1):
        with pytest.raises(Protected, match=f"Cannot purge {kind} flights.*for warehouse"):
            purge_dropped(safe, Wanted(id=dropped_id))

    assert ids(catalog) == [3, 2, 1]
    for dropped_id in (1, 2, 3):
        purge_dropped(catalog, Wanted(id=dropped_id))


@pytest.mark.parametrize("wanted", [NAMED, Wanted(namespace=FLIGHTS)])
def test_nothing_comes_back_into_a_warehouse_that_goes_meanwhile(catalog: Catalog, wanted: Wanted) -> None:
    table_in(catalog)
    named.drop(catalog, TABLES, DEPARTURES)
    drop_namespace(catalog, FLIGHTS)

    def let_it_go(step: str) -> None:
        if step == "before_undrop":
            catalog.server.warehouses._database.write(
                lambda connection: connection.exec_driver_sql("DELETE FROM warehouses")
            )

    with pytest.raises(NoSuchWarehouse, match=catalog.warehouse.name):
        undrop(
            with_server(catalog, step=let_it_go), wanted, NewName(namespace=("anew",), with_namespace=True)
        )
