from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, VIEWS
from app.catalog.deletions.orphan_search import OrphanWish, search_orphans
from app.catalog.exports import export_files, writing
from app.catalog.exports.export_files import (
    ExportedSettings,
    ExportedWarehouse,
    export_folder,
    list_exports,
    read_export,
)
from app.catalog.exports.writing import export_pointers, export_what_is_due
from app.catalog.namespaces import drop_namespace, update_namespace_properties
from app.catalog.past.dropped import Wanted, undrop
from app.database.warehouses import Layout, Warehouse
from app.engine.change.updates import SetProperties
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location
from app.errors import DatabaseUnavailable, FilesUnavailable
from app.fileio.files import FileIO
from app.fileio.local import LocalFiles
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import (
    catalog_on,
    new_warehouse,
    server_on,
    with_rules,
    with_server,
    with_warehouse,
)
from tests.builders.tables import DEPARTURES, FLIGHTS, commit_to, load_table, table_in, view_in

HOUR_MS = 3_600_000


class Through:
    """A store, but for some of its methods."""

    def __init__(self, store: Any, **methods: Any) -> None:
        self._store = store
        self.__dict__.update(methods)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.fixture
def local(tmp_path: Path) -> Catalog:
    """A warehouse in a local folder, whose server exports every hour."""
    server = server_on(f"sqlite:///{tmp_path}/icetower.db", LocalFiles())
    return with_rules(
        new_warehouse(server, root=f"file://{tmp_path}/lake"),
        pointer_export_ms=HOUR_MS,
        pointer_exports_kept=3,
    )


def exports(catalog: Catalog) -> list[Location]:
    folder = export_folder(catalog.warehouse.root_location, catalog.warehouse.name)
    return [export.location for export in list_exports(catalog.files, folder)]


def export(catalog: Catalog) -> Location | None:
    return export_pointers(catalog.server, catalog.warehouse)


def let_turn_come(catalog: Catalog) -> None:
    database = catalog.server.pointer_exports._database
    database.write(lambda connection: connection.execute(text("UPDATE pointer_exports SET due_ms = 1")))


def test_an_export_has_every_name_and_pointer(catalog: Catalog) -> None:
    table = table_in(catalog)
    view = view_in(catalog, TableIdentifier(FLIGHTS, "näme 'x'"))
    catalog.namespaces.create(
        catalog.warehouse.id, Namespace(("a", "b")), {"owner": "änna"}, catalog.author()
    )
    location = export(catalog)
    assert location is not None

    found = read_export(catalog.files, location)

    assert found.namespaces == {FLIGHTS: {}, Namespace(("a",)): {}, Namespace(("a", "b")): {"owner": "änna"}}
    assert {(each.kind, each.identifier, each.uuid, each.location) for each in found.pointers.values()} == {
        ("table", DEPARTURES, table.metadata.uuid, table.location),
        ("view", view.identifier, view.metadata.uuid, view.location),
    }
    assert found.sequence == 2


def test_a_server_that_was_overtaken_by_the_next_turn_writes_nothing(
    local: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    """What it has listed is older than the newest export, which says nothing of the database."""
    table_in(local)
    newer: list[Location | None] = []

    def slow(_warehouse: Warehouse) -> FileIO:
        if not newer:
            table_in(local, TableIdentifier(FLIGHTS, "arrivals"))
            newer.append(export(local))
        return local.files

    assert export(with_server(local, files_of=slow)) is None

    assert exports(local) == newer
    assert "old backup" not in caplog.text


def test_an_export_has_what_can_come_back_and_the_settings_without_secrets(catalog: Catalog) -> None:
    catalog = with_warehouse(
        catalog,
        default_properties={"icetower.undrop.keep-ms": "9000000", "token": "hunter2"},
        override_properties={"owner": "anna", "uri": "https://anna:hunter2@host/"},
        storage={
            "s3.region": "here",
            "s3.secret-access-key": "hunter2",
            "s3.session-token": "env:ICETOWER_SECRET_T",
        },
    )
    table = table_in(catalog)
    named.drop(catalog, TABLES, DEPARTURES)
    view_in(catalog)
    named.drop(catalog, VIEWS, DEPARTURES)
    update_namespace_properties(catalog, FLIGHTS, [], {"owner": "anna"})
    drop_namespace(catalog, FLIGHTS)
    entries = catalog.server.dropped.list(catalog.warehouse.id, catalog.now_ms())
    location = export_pointers(catalog.server, catalog.warehouse)
    assert location is not None
    assert b"hunter2" not in gzip.decompress(catalog.files.read(location))

    found = read_export(catalog.files, location)

    assert found.settings == ExportedSettings(
        {"icetower.undrop.keep-ms": "9000000"},
        {"owner": "anna"},
        {"s3.region": "here", "s3.session-token": "env:ICETOWER_SECRET_T"},
        ("s3.secret-access-key", "token", "uri"),
    )
    assert [(drop.kind, drop.dropped_ms, drop.until_ms, drop.principal) for drop in found.dropped] == [
        (entry.kind, entry.dropped_ms, entry.until_ms, entry.principal) for entry in reversed(entries)
    ]
    assert (found.dropped[0].uuid, found.dropped[0].location) == (table.metadata.uuid, table.location)
    assert found.dropped[2].properties == {"owner": "anna"}


def test_what_is_brought_back_while_an_export_is_written_is_in_it(catalog: Catalog) -> None:
    table_in(catalog)
    named.drop(catalog, TABLES, DEPARTURES)
    table_in(catalog, TableIdentifier(FLIGHTS, "other"))
    listed = catalog.server.namespaces.list_all

    def meanwhile(*arguments: Any) -> Any:
        if arguments[1] is None:
            undrop(catalog, Wanted(namespace=FLIGHTS, name=DEPARTURES.name))
            named.drop(catalog, TABLES, TableIdentifier(FLIGHTS, "other"))
        return listed(*arguments)

    location = export_pointers(
        with_server(catalog, namespaces=Through(catalog.server.namespaces, list_all=meanwhile)).server,
        catalog.warehouse,
    )
    assert location is not None

    found = read_export(catalog.files, location)

    assert set(found.pointers) == {DEPARTURES}
    assert [drop.name for drop in found.dropped] == ["departures", "other"]


@pytest.mark.parametrize("most", [1, 9])
def test_table_that_is_made_again_while_names_are_listed_is_in_it_once(catalog: Catalog, most: int) -> None:
    table_in(catalog)
    listed, made = catalog.server.pointers.list_pointers, 0

    def meanwhile(*arguments: Any) -> Any:
        nonlocal made
        found = listed(*arguments)
        if found and made < most:
            made += 1
            named.drop(catalog, TABLES, DEPARTURES)
            table_in(catalog)
        return found

    server = with_server(catalog, pointers=Through(catalog.server.pointers, list_pointers=meanwhile)).server
    if most > 1:
        with pytest.raises(DatabaseUnavailable, match="faster than they are listed"):
            export_pointers(server, catalog.warehouse)
        return
    location = export_pointers(server, catalog.warehouse)

    assert location is not None
    (pointer,) = read_export(catalog.files, location).pointers.values()
    assert pointer.location == load_table(catalog, DEPARTURES).location


def test_an_export_is_written_only_if_something_changed(catalog: Catalog) -> None:
    table_in(catalog)
    assert export(catalog) is not None

    assert export(catalog) is None
    commit_to(catalog, SetProperties(updates={"a": "b"}))
    assert export(catalog) is not None
    catalog.namespaces.update_properties(catalog.warehouse.id, FLIGHTS, [], {"a": "b"}, catalog.author())
    assert export(catalog) is not None
    assert len(exports(catalog)) == 3


def test_an_empty_catalog_writes_none(catalog: Catalog) -> None:
    assert export(catalog) is None
    assert exports(catalog) == []


def test_a_warehouse_without_names_is_exported_for_its_settings(local: Catalog) -> None:
    location = export(with_warehouse(local, default_properties={"icetower.protected": "true"}))
    assert location is not None

    found = read_export(local.files, location)

    assert found.settings == ExportedSettings({"icetower.protected": "true"})
    assert (found.namespaces, found.pointers, found.dropped) == ({}, {}, [])


def test_an_export_without_names_is_not_put_before_those_of_a_lost_database(
    local: Catalog, tmp_path: Path
) -> None:
    table_in(local)
    names = export(local)
    new_server = server_on(f"sqlite:///{tmp_path}/new.db", LocalFiles())
    new = new_warehouse(new_server, root=local.warehouse.root_location, default_properties={"a": "b"})

    assert export(new) is None
    assert exports(local) == [names]


def test_the_first_warehouse_knows_the_others(local: Catalog, tmp_path: Path) -> None:
    server = local.server
    files = new_warehouse(
        server,
        "files",
        f"file://{tmp_path}/files",
        layout=Layout.HADOOP,
        override_properties={"icetower.protected": "true"},
        storage={"s3.secret-access-key": "hunter2"},
    )
    rows = new_warehouse(server, "rows", f"file://{tmp_path}/rows", default_properties={"a": "b"})
    new_warehouse(server, "gone", "memory://gone")
    table_in(rows)

    location, other = export(local), export(rows)

    assert location is not None
    assert other is not None
    settings = ExportedSettings(overrides={"icetower.protected": "true"}, left_out=("s3.secret-access-key",))
    assert read_export(local.files, location).warehouses == [
        ExportedWarehouse("files", files.warehouse.root_location, "hadoop", settings),
        ExportedWarehouse("rows", rows.warehouse.root_location, "catalog", ExportedSettings({"a": "b"})),
    ]
    assert read_export(local.files, other).warehouses == []


def test_nothing_is_written_into_a_tree_of_file_system_tables(local: Catalog, tmp_path: Path) -> None:
    tree = new_warehouse(
        local.server, "files", f"file://{tmp_path}/files", layout=Layout.HADOOP, default_properties={"a": "b"}
    )
    for _ in range(2):
        export_what_is_due(local.server)
        let_turn_come(local)

    assert exports(tree) == []
    assert len(exports(local)) == 1


def test_the_last_few_stay_and_those_of_another_database_too(local: Catalog, tmp_path: Path) -> None:
    table_in(local)
    other = with_rules(
        new_warehouse(
            server_on(f"sqlite:///{tmp_path}/other.db", LocalFiles()), root=local.warehouse.root_location
        ),
        pointer_exports_kept=1,
    )
    table_in(other)
    foreign = export(other)
    written = []
    for number in range(5):
        commit_to(local, SetProperties(updates={"n": str(number)}))
        written.append(export(local))

    assert set(exports(local)) == {foreign, *written[-3:]}


def test_an_export_comes_after_one_that_was_written_while_the_clock_was_ahead(local: Catalog) -> None:
    """Else a rebuild goes by that one, and takes what was made in the hours since for dropped."""
    saved = local.server.pointer_exports
    ahead = with_server(local, pointer_exports=Through(saved, now_ms=lambda: saved.now_ms() + 12 * HOUR_MS))
    table_in(local)
    first = export(ahead)
    commit_to(local, SetProperties(updates={"a": "b"}))
    second = export(local)
    assert second is not None
    assert exports(local) == [first, second]
    assert read_export(local.files, second).at_ms <= saved.now_ms()


def test_a_warehouse_is_exported_in_its_turn(local: Catalog) -> None:
    table_in(local)
    export_what_is_due(local.server)
    assert exports(local) == []
    let_turn_come(local)

    export_what_is_due(local.server)
    commit_to(local, SetProperties(updates={"a": "b"}))
    export_what_is_due(local.server)

    assert len(exports(local)) == 1


def test_without_an_interval_nothing_is_exported(local: Catalog) -> None:
    table_in(local)
    off = with_rules(local, pointer_export_ms=0)
    export_what_is_due(local.server)
    let_turn_come(local)

    export_what_is_due(off.server)

    assert exports(local) == []


def test_a_store_that_does_not_answer_is_tried_at_the_next_turn(local: Catalog) -> None:
    class Full(LocalFiles):
        def write_new(self, location: Location, content: bytes) -> None:
            raise FilesUnavailable("no room")

    table_in(local)
    export_what_is_due(local.server)
    let_turn_come(local)

    export_what_is_due(with_server(local, files_of=lambda _warehouse: Full()).server)
    assert exports(local) == []
    let_turn_come(local)
    export_what_is_due(local.server)
    assert len(exports(local)) == 1


def test_an_export_ends_between_two_pages_when_the_server_stops_and_gives_its_turn_back(
    local: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_PAGE", 1)
    table_in(local)
    export_what_is_due(local.server)
    let_turn_come(local)

    answers = iter([False, False])
    export_what_is_due(local.server, lambda: next(answers, True))
    assert exports(local) == []
    export_what_is_due(local.server, lambda: True)
    assert exports(local) == []
    export_what_is_due(local.server)

    assert len(exports(local)) == 1


def test_many_pointers_fit(catalog: Catalog) -> None:
    # Their lines are made and packed page by page; what grows is the packed file.
    table_in(catalog)
    database = catalog.server.pointer_exports._database
    copies = """
        INSERT INTO pointers (namespace_id, kind, name, uuid, metadata_location, created_ms, updated_ms)
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
        SELECT namespace_id, kind, name || i, uuid || i, metadata_location || i, 0, 0 FROM pointers, n
    """
    database.write(lambda connection: connection.execute(text(copies)))
    location = export(catalog)
    assert location is not None

    assert len(read_export(catalog.files, location).pointers) == 20_001
    assert len(catalog.files.read(location)) < 40 * 20_001


def test_no_search_for_orphans_finds_an_export(tmp_path: Path) -> None:
    # Even if a table's own place is the root of the warehouse.
    catalog = catalog_on(f"sqlite:///{tmp_path}/icetower.db", MemoryFiles())
    catalog = with_rules(catalog, orphan_age_ms=0)
    table = table_in(catalog)
    rooted = table.metadata.replace(location="memory://wh")
    location = export(catalog)
    assert location is not None
    pointer = catalog.find(DEPARTURES)
    assert pointer is not None

    found = search_orphans(catalog, pointer, rooted, OrphanWish())

    assert location not in {file.location for file in found.files.values()}
    assert found.listed_files > 0


def test_what_is_too_long_for_a_line_keeps_no_export_from_being_read(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A namespace may have any number of properties, and a pointer may have been anywhere."""
    monkeypatch.setattr(export_files, "_LONGEST_LINE", 1_000)
    table_in(catalog)
    places = [commit_to(catalog, SetProperties(updates={"a": f"{n}"})).location for n in range(20)]
    for place in reversed(places):
        named.register(catalog, TABLES, DEPARTURES, str(place), overwrite=True)
    long, gone = Namespace(("long",)), Namespace(("gone",))
    for namespace in (long, gone):
        catalog.namespaces.create(catalog.warehouse.id, namespace, {"text": "ä" * 1_000}, catalog.author())
    catalog = with_warehouse(
        catalog, default_properties={"icetower.undrop.keep-ms": "9000000", "text": "x" * 1_000}
    )
    drop_namespace(catalog, gone)

    location = export(catalog)

    assert location is not None
    found = read_export(catalog.files, location)
    assert found.namespaces == {FLIGHTS: {}, long: {}}
    assert found.pointers[DEPARTURES].location == places[0]
    assert places[-1] in found.pointers[DEPARTURES].left
    assert [(drop.namespace, drop.properties) for drop in found.dropped] == [(gone, {})]
    assert found.settings == ExportedSettings()


def test_exports_are_gzip_and_one_document_a_line(catalog: Catalog) -> None:
    table_in(catalog)
    location = export(catalog)
    assert location is not None

    lines = gzip.decompress(catalog.files.read(location)).decode().splitlines()

    assert lines[0].startswith('{"icetower-pointers":1,"warehouse":"wh","root-location":"memory://wh"')
    assert lines[-1] == '{"namespaces":1,"pointers":1}'
    assert str(load_table(catalog).location) in lines[3]
