"""What places of pointers and namespaces promise: rows on SQLite and Postgres, files on local disk, HDFS and S3."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog import named
from app.catalog.commits.landing import land_one
from app.catalog.commits.table_commits import TableCommit
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.filesystem_tables.places import WarehouseTree
from app.catalog.filesystem_tables.rules import next_version_location
from app.database.outcomes.idempotency_keys import IdempotencyClaim
from app.database.pointers.moves import Advance, Creation, NameTaken
from app.database.pointers.pointer import Pointer, PointerKind
from app.database.pointers.pointers import PutOutcome
from app.database.pointers.recoverable import PURGE_NOW
from app.database.warehouses import Layout
from app.engine.change.updates import SetProperties
from app.engine.model.identifiers import Namespace
from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata
from app.errors import (
    IdempotencyKeyTaken,
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    TableExists,
)
from app.fileio.local import LocalFiles
from app.fileio.schemes import files_for
from tests.builders.catalogs import START_MS, new_warehouse, server_on
from tests.builders.databases import migrated_database_of
from tests.builders.file_system import identifier, new_table
from tests.servers.postgres import PostgresServer
from tests.servers.s3 import S3Server
from tests.servers.webhdfs import HdfsPlace

PLACES = [
    "rows-sqlite",
    pytest.param("rows-postgres", marks=pytest.mark.postgres),
    "files-local",
    "files-hdfs",
    pytest.param("files-s3", marks=pytest.mark.s3),
]
_BUCKET = "pointers"


@pytest.fixture(params=PLACES)
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    kind, _, where = request.param.partition("-")
    url = f"sqlite:///{tmp_path / 'rows.db'}"
    if where == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        url = server.url(migrated_database_of(server))
    if where == "s3":
        s3: S3Server = request.getfixturevalue("s3_server")
        s3.create_bucket(_BUCKET)
        root, files = f"s3://{_BUCKET}/{uuid.uuid4()}", files_for(s3.storage)
    elif where == "hdfs":
        hdfs: HdfsPlace = request.getfixturevalue("hdfs")
        root, files = hdfs.new_root(), files_for(hdfs.storage)
    else:
        (tmp_path / "tables").mkdir()
        root, files = f"file://{tmp_path / 'tables'}", LocalFiles([f"file://{tmp_path / 'tables'}"])
    layout = Layout.HADOOP if kind == "files" else Layout.CATALOG
    server_here = server_on(url, files)
    yield new_warehouse(server_here, "wh", root, layout=layout)
    server_here.pointers._database.close()
    shutil.rmtree(tmp_path / "tables", ignore_errors=True)


def add(catalog: Catalog, dotted: str) -> Pointer:
    namespace = identifier(dotted).namespace
    if catalog.namespaces.find(catalog.warehouse.id, namespace) is None:
        catalog.namespaces.create(catalog.warehouse.id, namespace, {}, catalog.author())
    named.create(catalog, new_table(dotted))
    return there(catalog, dotted)


def there(catalog: Catalog, dotted: str) -> Pointer:
    found = catalog.find(identifier(dotted))
    assert found is not None
    return found


def metadata_of(catalog: Catalog, pointer: Pointer) -> TableMetadata:
    return catalog.read(TABLES, pointer)


def advance(catalog: Catalog, seen: Pointer, mark: str) -> Advance:
    """Return the move to a version that has one property more."""
    before = metadata_of(catalog, seen)
    after = before.replace(properties={**before.properties, mark: "here"})
    location = Location(f"{before.location}/metadata/{uuid.uuid4()}.metadata.json")
    if not catalog.has_rows:
        folder = WarehouseTree(catalog.warehouse.root_location).folder_of(seen.identifier)
        location = next_version_location(folder, seen.metadata_location, before)
    else:
        catalog.server.metadata_files.write(catalog.files, location, after.to_json())
    return Advance(seen, location, seen.uuid, content=after.to_json())


def commit(catalog: Catalog, dotted: str, mark: str) -> None:
    update = SetProperties(updates={mark: "here"})
    land_one(catalog, TableCommit(identifier(dotted), (), [update]))


def test_what_is_created_is_found_under_its_name_only(catalog: Catalog) -> None:
    made = add(catalog, "a.b.t")

    assert (made.identifier, made.kind) == (identifier("a.b.t"), PointerKind.TABLE)
    assert metadata_of(catalog, made).uuid == made.uuid
    for other in ("a.b.u", "a.t", "a.b.c.t", "x.t", "a.b", "a.b.T"):
        assert catalog.find(identifier(other)) is None


def test_a_name_is_given_once(catalog: Catalog) -> None:
    made = add(catalog, "a.t")

    with pytest.raises(TableExists):
        named.create(catalog, new_table("a.t"))
    taken = Creation(
        catalog.warehouse.id, PointerKind.TABLE, made.identifier, made.uuid, made.metadata_location
    )
    with pytest.raises(NameTaken):
        catalog.pointers.check_and_put(
            [replace(taken, content=metadata_of(catalog, made).to_json())], catalog.author()
        )
    assert there(catalog, "a.t") == made


def test_nothing_is_created_in_a_namespace_that_is_not_there(catalog: Catalog) -> None:
    with pytest.raises(NoSuchNamespace):
        named.create(catalog, new_table("a.t"))

    assert catalog.namespaces.list_children(catalog.warehouse.id, None) == ()


def test_a_pointer_moves_from_where_it_was_seen_and_from_nowhere_else(catalog: Catalog) -> None:
    seen = add(catalog, "a.t")
    first, second = advance(catalog, seen, "first"), advance(catalog, seen, "second")

    assert catalog.pointers.check_and_put([first], catalog.author()) is PutOutcome.ADVANCED
    assert catalog.pointers.check_and_put([second], catalog.author()) is PutOutcome.MOVED

    now = there(catalog, "a.t")
    assert (now.id, now.metadata_location, now.uuid) == (seen.id, first.location, seen.uuid)
    assert set(metadata_of(catalog, now).properties) & {"first", "second"} == {"first"}


def test_one_of_many_writers_wins(catalog: Catalog) -> None:
    seen = add(catalog, "a.t")
    moves = [advance(catalog, seen, f"mark-{number}") for number in range(8)]

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(
            pool.map(lambda move: catalog.pointers.check_and_put([move], catalog.author()), moves)
        )

    assert sorted(outcome.value for outcome in outcomes) == ["advanced"] + ["moved"] * 7
    won = moves[outcomes.index(PutOutcome.ADVANCED)]
    properties = metadata_of(catalog, there(catalog, "a.t")).properties
    assert [name for name in properties if name.startswith("mark-")] == [f"mark-{moves.index(won)}"]


def test_all_of_many_commits_land(catalog: Catalog) -> None:
    add(catalog, "a.t")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: commit(catalog, "a.t", f"mark-{number}"), range(8)))

    properties = metadata_of(catalog, there(catalog, "a.t")).properties
    assert {f"mark-{number}" for number in range(8)} <= properties.keys()


def test_it_is_known_whether_a_move_has_happened(catalog: Catalog) -> None:
    seen, author = add(catalog, "a.t"), catalog.author()
    landed, lost = advance(catalog, seen, "first"), advance(catalog, seen, "second")
    assert not catalog.pointers.has_landed(landed, author)

    catalog.pointers.check_and_put([landed], author)

    assert catalog.pointers.has_landed(landed, author)
    assert not catalog.pointers.has_landed(lost, author)
    commit(catalog, "a.t", "later")
    assert catalog.pointers.has_landed(landed, author)


def test_a_request_that_was_answered_is_not_carried_out_again(catalog: Catalog) -> None:
    seen = add(catalog, "a.t")
    claim = IdempotencyClaim("alice", "key", "hash", START_MS, START_MS + 10**9, "left")
    move = advance(catalog, seen, "once")

    assert catalog.pointers.check_and_put([move], catalog.author(), claim) is PutOutcome.ADVANCED
    again = advance(catalog, there(catalog, "a.t"), "twice")
    with pytest.raises(IdempotencyKeyTaken):
        catalog.pointers.check_and_put([again], catalog.author(), claim)

    assert "twice" not in metadata_of(catalog, there(catalog, "a.t")).properties


def test_names_are_listed_in_pages(catalog: Catalog) -> None:
    for name in ("d", "b", "a", "c"):
        add(catalog, f"n.{name}")
    add(catalog, "n.deeper.x")
    listed, here = catalog.pointers.list_names, (catalog.warehouse.id, Namespace(("n",)))

    assert listed(*here, PointerKind.TABLE) == ("a", "b", "c", "d")
    assert listed(*here, PointerKind.TABLE, "b", 1) == ("c",)
    assert listed(*here, PointerKind.TABLE, "d") == ()
    assert listed(*here, PointerKind.VIEW) == ()
    with pytest.raises(NoSuchNamespace):
        listed(catalog.warehouse.id, Namespace(("nothing",)), PointerKind.TABLE)


def test_all_pointers_are_found_page_by_page(catalog: Catalog) -> None:
    added = {add(catalog, dotted) for dotted in ("n.a", "n.b", "m.a", "n.o.p", "m.z")}

    found: list[Pointer] = []
    after = 0
    while page := catalog.pointers.list_pointers(catalog.warehouse.id, PointerKind.TABLE, after, 2):
        found += page
        after = page[-1].id

    assert len(found) == len(added)
    assert {pointer.identifier for pointer in found} == {pointer.identifier for pointer in added}
    assert catalog.pointers.list_pointers(catalog.warehouse.id, PointerKind.VIEW, 0, 9) == []


def test_history_has_each_place_of_a_pointer_newest_first(catalog: Catalog) -> None:
    first = add(catalog, "a.t")
    commit(catalog, "a.t", "one")
    second = there(catalog, "a.t")
    commit(catalog, "a.t", "two")
    third = there(catalog, "a.t")

    events = catalog.pointers.history(first.id)

    places = [pointer.metadata_location for pointer in (third, second, first)]
    assert [event.location for event in events] == places
    assert [event.previous_location for event in events] == [*places[1:], None]
    assert [event.event for event in events] == ["committed", "committed", "created"]
    assert catalog.pointers.history(first.id, events[0].sequence, 1) == events[1:2]
    assert catalog.pointers.history(first.id - 1) == []


def test_namespaces_are_made_with_those_above_them(catalog: Catalog) -> None:
    spaces, here = catalog.namespaces, catalog.warehouse.id
    spaces.create(here, Namespace(("a", "b", "c")), {}, catalog.author())
    spaces.create(here, Namespace(("a", "x")), {}, catalog.author())

    assert spaces.list_children(here, None) == ("a",)
    assert spaces.list_children(here, Namespace(("a",))) == ("b", "x")
    assert spaces.list_children(here, Namespace(("a",)), "b", 1) == ("x",)
    assert spaces.list_children(here, Namespace(("a", "x"))) == ()
    assert spaces.find(here, Namespace(("a", "b"))) is not None
    assert spaces.find(here, Namespace(("b",))) is None
    with pytest.raises(NamespaceExists):
        spaces.create(here, Namespace(("a", "b")), {}, catalog.author())
    with pytest.raises(NoSuchNamespace):
        spaces.list_children(here, Namespace(("b",)))


def test_only_an_empty_namespace_can_be_dropped(catalog: Catalog) -> None:
    spaces, here = catalog.namespaces, catalog.warehouse.id
    add(catalog, "a.t")
    spaces.create(here, Namespace(("a", "b")), {}, catalog.author())
    for full in (Namespace(("a",)),):
        with pytest.raises(NamespaceNotEmpty):
            spaces.drop(here, full, catalog.author())

    spaces.drop(here, Namespace(("a", "b")), catalog.author())

    assert spaces.list_children(here, Namespace(("a",))) == ()
    assert there(catalog, "a.t").identifier == identifier("a.t")
    with pytest.raises(NoSuchNamespace):
        spaces.drop(here, Namespace(("a", "b")), catalog.author())


def test_a_dropped_table_is_gone_and_its_name_is_free(catalog: Catalog) -> None:
    seen = add(catalog, "a.t")

    dropped = catalog.pointers.drop(
        catalog.warehouse.id, seen.identifier, PointerKind.TABLE, catalog.author(), recovery=PURGE_NOW
    )

    assert dropped is not None
    assert dropped.id == seen.id
    assert catalog.find(seen.identifier) is None
    assert catalog.pointers.list_names(catalog.warehouse.id, Namespace(("a",)), PointerKind.TABLE) == ()
    stale = advance_of_gone(catalog, seen)
    assert catalog.pointers.check_and_put([stale], catalog.author()) is PutOutcome.MOVED
    assert catalog.find(seen.identifier) is None
    again = add(catalog, "a.t")
    assert again.uuid != seen.uuid
    assert (
        catalog.pointers.drop(
            catalog.warehouse.id,
            identifier("a.nothing"),
            PointerKind.TABLE,
            catalog.author(),
            recovery=PURGE_NOW,
        )
        is None
    )


def advance_of_gone(catalog: Catalog, seen: Pointer) -> Advance:
    location = Location(seen.metadata_location.replace("v1.", "v2."))
    if catalog.has_rows:
        location = Location(f"{seen.metadata_location}-2")
    return Advance(seen, location, seen.uuid, content=b"{}")
