"""Tables of other catalogs move in: PyIceberg reads every row of them, and goes on writing here."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import ForbiddenError
from pyiceberg.table import Table

from app.client.catalog import RemoteCatalog
from app.client.http.failures import CatalogRefused
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.properties.own_properties import MOVED_TO
from app.moving.mover import LET_GO_MEANWHILE
from app.moving.reports import MoveReport, MoveState
from app.moving.rest_source import RestSource
from app.moving.runs import MoveSummary, recheck
from app.moving.sources import Entry
from app.moving.sql_source import SqlSource
from app.moving.terms import Mode, Terms
from tests.builders.moves import Moves
from tests.servers.icetower import icetower_process
from tests.servers.postgres import PostgresServer

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "region": ["eu", "us", "eu"]})
MORE = pa.table({"id": pa.array([4], pa.int64()), "region": ["eu"]})
VIEW_VERSION = {
    "version-id": 1,
    "timestamp-ms": 1_700_000_000_000,
    "schema-id": 0,
    "summary": {"engine-name": "test"},
    "representations": [{"type": "sql", "dialect": "spark", "sql": "SELECT 1"}],
    "default-namespace": ["sales"],
}
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
}
SALES = Namespace(("sales",))
ORDERS = Entry(TableIdentifier(SALES, "orders"))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which all catalogs of these tests keep their tables."""
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="module")
def new_server(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("new-home")
    with icetower_process(
        folder, default_warehouse_location=str(lake), file_deletion_interval_seconds="0.2"
    ) as uri:
        yield uri


@pytest.fixture(scope="module")
def old_server(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("old-home")
    with icetower_process(folder, default_warehouse_location=str(lake / "old")) as uri:
        yield uri


@pytest.fixture
def new_home(new_server: str) -> Iterator[str]:
    yield new_server
    empty(new_server)


@pytest.fixture
def old_home(old_server: str) -> Iterator[str]:
    yield old_server
    empty(old_server)


def empty(uri: str) -> None:
    """Drop all that a server has; files stay."""
    with RemoteCatalog(uri) as catalog:
        source = RestSource(catalog, uri)
        for namespace in sorted(source.namespaces(), reverse=True):
            for entry in source.entries(namespace):
                (catalog.tables if entry.kind == "table" else catalog.views).drop(entry.identifier)
            catalog.namespaces.drop(namespace)


@pytest.fixture
def moves(new_home: str, tmp_path: Path) -> Moves:
    return Moves(new_home, tmp_path / "report.ndjson")


@pytest.fixture
def old_table(old_home: str) -> Table:
    """Return a table of two commits in another Icetower."""
    catalog = RestCatalog("old", uri=old_home)
    catalog.create_namespace("sales", {"owner": "anna"})
    table: Table = catalog.create_table("sales.orders", ROWS.schema)
    table.append(ROWS)
    table.append(MORE)
    return table


@pytest.fixture
def old_source(old_home: str) -> Iterator[RestSource]:
    with RemoteCatalog(old_home) as catalog:
        yield RestSource(catalog, old_home)


def ids_in(table: Table) -> list[int]:
    table.refresh()
    return sorted(table.scan().to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_tables_of_a_sql_catalog_are_adopted_with_all_rows_and_written_on(
    request: pytest.FixtureRequest, database: str, lake: Path, tmp_path: Path, moves: Moves
) -> None:
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    if database == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        url = server.url(server.create_database()).replace("postgresql://", "postgresql+psycopg://", 1)
    theirs = SqlCatalog("prod", uri=url, warehouse=f"file://{lake}/{tmp_path.name}")
    theirs.create_namespace("eu.sales", {"owner": "anna"})
    table = theirs.create_table("eu.sales.orders", ROWS.schema, properties={"team": "lake"})
    table.append(ROWS)
    table.append(MORE)
    before = table.metadata

    with closing(SqlSource(url)) as source:
        assert moves.run(source) == {"eu.sales.orders": MoveState.DONE}
        assert moves.run(source) == {}

    assert not theirs.table_exists("eu.sales.orders")
    here = RestCatalog("new", uri=moves.uri)
    found = here.load_table("eu.sales.orders")
    assert found.metadata == before
    assert here.load_namespace_properties("eu.sales")["owner"] == "anna"
    found.append(MORE)
    assert ids_in(found) == [1, 2, 3, 4, 4]
    theirs.engine.dispose()


def test_tables_views_and_properties_of_another_icetower_are_adopted(
    lake: Path, old_table: Table, old_source: RestSource, old_home: str, moves: Moves
) -> None:
    with RemoteCatalog(old_home) as catalog:
        catalog.views.create(TableIdentifier(SALES, "big"), SCHEMA, VIEW_VERSION)
        catalog.namespaces.create(Namespace(("hive",)), {"location": f"file://{lake}/old/hive.db"})
    assert moves.run(old_source, Terms(Mode.ADOPT, dry_run=True)) == {
        "sales.orders": MoveState.WOULD_MOVE,
        "sales.big": MoveState.WOULD_MOVE,
    }

    assert set(moves.run(old_source).values()) == {MoveState.DONE}

    here = RestCatalog("new", uri=moves.uri)
    properties = here.load_namespace_properties("sales")
    # Each catalog says where new tables go; that of the source is not brought along.
    assert properties == {"owner": "anna", "location": f"file://{lake}/sales"}
    assert here.load_namespace_properties("hive") == {"location": f"file://{lake}/hive"}
    assert here.list_views("sales") == [("sales", "big")]
    assert ids_in(here.load_table("sales.orders")) == [1, 2, 3, 4]
    assert RestCatalog("old", uri=old_home).list_tables("sales") == []


def test_commits_at_the_source_meanwhile_are_not_lost(
    old_table: Table, old_source: RestSource, moves: Moves
) -> None:
    def meddle(step: str) -> None:
        # Once after the first look, once between the look that was right and the drop.
        if step in {"begun", "registered"} and len(seen) < 2:
            seen.append(step)
            old_table.refresh()
            old_table.append(MORE)

    seen: list[str] = []
    assert moves.run(old_source, Terms(Mode.ADOPT, step=meddle)) == {"sales.orders": MoveState.DONE}

    assert seen == ["begun", "registered"]
    here = RestCatalog("new", uri=moves.uri).load_table("sales.orders")
    assert ids_in(here) == [1, 2, 3, 4, 4, 4]


def test_every_acknowledged_commit_of_a_writer_at_the_source_is_there_afterwards(
    old_table: Table, old_source: RestSource, moves: Moves
) -> None:
    written, started = [], threading.Event()

    def write() -> None:
        for number in range(100, 1_000):
            try:
                old_table.append(pa.table({"id": pa.array([number], pa.int64()), "region": ["eu"]}))
            except Exception:  # noqa: BLE001 - the table is gone: whatever PyIceberg says of that
                return
            written.append(number)
            started.set()

    writer = threading.Thread(target=write)
    writer.start()
    assert started.wait(60)
    lines = moves.run(old_source)
    for _ in range(20):
        if lines.get("sales.orders") == MoveState.DONE:
            break
        lines = moves.run(old_source)  # the writer was too fast: it never rested
    writer.join()

    assert lines == {"sales.orders": MoveState.DONE}
    here = RestCatalog("new", uri=moves.uri).load_table("sales.orders")
    assert ids_in(here) == [1, 2, 3, 4, *written]


def test_two_catalogs_that_adopt_one_table_are_told_of_each_other(
    old_table: Table, old_source: RestSource, old_home: str, moves: Moves
) -> None:
    taken = TableIdentifier(SALES, "taken")

    def take(step: str) -> None:
        if step == "registered":
            with RemoteCatalog(old_home) as other:
                location = other.tables.unregister(ORDERS.identifier).metadata_location
                assert location is not None
                other.tables.register(taken, location)

    terms = Terms(Mode.ADOPT, step=take)
    assert moves.run(old_source, terms) == {"sales.orders": MoveState.DONE}

    summary = MoveSummary()
    summary.add(moves.lines["sales.orders"])
    assert summary.is_fine
    assert summary.remarks == [f"sales.orders: {LET_GO_MEANWHILE}"]


def test_fence_marks_the_source_and_finds_commits_behind_it(
    old_table: Table, old_source: RestSource, moves: Moves
) -> None:
    terms = Terms(Mode.FENCE, moved_to=moves.uri)
    assert moves.run(old_source, terms) == {"sales.orders": MoveState.DONE}
    assert moves.run(old_source, terms) == {"sales.orders": MoveState.KEPT}

    old_table.refresh()
    assert old_table.properties[MOVED_TO] == moves.uri
    report = MoveReport(moves.report, old_source.name, moves.uri)
    assert list(recheck(old_source, report)) == []
    here = RestCatalog("new", uri=moves.uri).load_table("sales.orders")
    here.append(MORE)
    # Commits here are none at the source: all is as it should be.
    assert moves.run(old_source, terms) == {"sales.orders": MoveState.KEPT}

    old_table.append(MORE)
    ((line, text),) = recheck(old_source, report)
    assert line.entry == ORDERS
    assert text.startswith("the source has moved on: from ")
    assert moves.run(old_source, terms) == {"sales.orders": MoveState.REFUSED}
    assert (
        moves.lines["sales.orders"].codes == ("same-uuid",) or "diverged" in moves.lines["sales.orders"].codes
    )


def test_fenced_source_deletes_no_file_of_the_table_and_its_new_home_may(
    old_table: Table, old_source: RestSource, old_home: str, moves: Moves, new_home: str
) -> None:
    table = ORDERS.identifier
    assert moves.run(old_source, Terms(Mode.FENCE)) == {"sales.orders": MoveState.DONE}

    with RemoteCatalog(old_home) as theirs:
        for call in (
            lambda: theirs.tables.drop(table, purge=True),
            lambda: theirs.tables.expire(table),
            lambda: theirs.orphans.mark(table),
        ):
            with pytest.raises(CatalogRefused, match=r"gc\.enabled"):
                call()
    with RemoteCatalog(new_home) as ours:
        properties = ours.tables.load(table).metadata["properties"]
        assert not {"gc.enabled", MOVED_TO} & properties.keys()
        ours.tables.expire(table, dry_run=True)


def test_fenced_table_that_moved_on_at_its_source_is_followed(
    old_table: Table, old_source: RestSource, moves: Moves
) -> None:
    terms = Terms(Mode.FENCE)
    moves.run(old_source, terms)
    old_table.refresh()
    old_table.append(MORE)

    assert moves.run(old_source, terms) == {"sales.orders": MoveState.DONE}
    here = RestCatalog("new", uri=moves.uri).load_table("sales.orders")
    assert (here.scan().to_arrow().num_rows, here.properties.get("gc.enabled")) == (5, None)

    assert moves.run(old_source) == {"sales.orders": MoveState.DONE}
    here.refresh()
    assert here.properties.get("gc.enabled") is None


def test_fence_leaves_a_table_alone_whose_files_were_not_to_be_deleted(
    old_table: Table, old_source: RestSource, moves: Moves
) -> None:
    old_table.transaction().set_properties({"gc.enabled": "false"}).commit_transaction()

    assert moves.run(old_source, Terms(Mode.FENCE)) == {"sales.orders": MoveState.DONE}
    here = RestCatalog("new", uri=moves.uri).load_table("sales.orders")
    assert here.properties["gc.enabled"] == "false"
    assert MOVED_TO not in here.properties


def test_table_that_was_fenced_for_another_catalog_is_not_taken_from_it(
    old_table: Table, old_source: RestSource, moves: Moves
) -> None:
    old_table.transaction().set_properties({MOVED_TO: "http://elsewhere"}).commit_transaction()

    assert moves.run(old_source) == {"sales.orders": MoveState.REFUSED}
    assert moves.lines["sales.orders"].codes == ("fenced",)
    assert "was moved to http://elsewhere" in str(moves.lines["sales.orders"].reason)
    allowed = Terms(Mode.ADOPT, allowed=frozenset({"fenced"}))
    assert moves.run(old_source, allowed) == {"sales.orders": MoveState.DONE}


def test_table_that_is_looked_on_is_read_only_here_and_follows_its_source(
    old_table: Table, old_source: RestSource, moves: Moves, new_home: str
) -> None:
    terms = Terms(Mode.LOOK_ON)
    assert moves.run(old_source, terms) == {"sales.orders": MoveState.DONE}

    here = RestCatalog("new", uri=new_home)
    table = here.load_table("sales.orders")
    assert ids_in(table) == [1, 2, 3, 4]
    assert table.properties["gc.enabled"] == "false"
    with pytest.raises(ForbiddenError, match="belongs to another catalog"):
        table.append(MORE)
    with pytest.raises(Exception, match="read-only here"):
        here.purge_table("sales.orders")

    old_table.append(MORE)
    assert moves.run(old_source, terms) == {"sales.orders": MoveState.DONE}
    assert ids_in(table) == [1, 2, 3, 4, 4]
    assert moves.run(old_source, terms) == {"sales.orders": MoveState.KEPT}
    assert ids_in(old_table) == [1, 2, 3, 4, 4]

    assert moves.run(old_source) == {"sales.orders": MoveState.DONE}
    table.refresh()
    table.append(MORE)
    assert ids_in(table) == [1, 2, 3, 4, 4, 4]


def test_export_registers_there_and_can_let_go_here(
    old_table: Table, old_source: RestSource, old_home: str, moves: Moves
) -> None:
    assert moves.run(old_source, Terms(Mode.KEEP)) == {"sales.orders": MoveState.DONE}
    assert ids_in(RestCatalog("new", uri=moves.uri).load_table("sales.orders")) == [1, 2, 3, 4]
    assert RestCatalog("old", uri=old_home).table_exists("sales.orders")
    assert moves.run(old_source, Terms(Mode.KEEP)) == {"sales.orders": MoveState.KEPT}

    assert moves.run(old_source, Terms(Mode.ADOPT)) == {"sales.orders": MoveState.DONE}
    assert not RestCatalog("old", uri=old_home).table_exists("sales.orders")


def test_name_that_another_table_has_is_refused_and_a_rename_helps(
    old_table: Table, old_source: RestSource, moves: Moves
) -> None:
    here = RestCatalog("new", uri=moves.uri)
    here.create_namespace("sales")
    here.create_table("sales.orders", ROWS.schema)

    assert moves.run(old_source) == {"sales.orders": MoveState.REFUSED}
    assert moves.lines["sales.orders"].codes == ("name-taken",)
    assert ids_in(old_table) == [1, 2, 3, 4]

    assert moves.run(old_source, renamed={("sales",): ("eu", "sales")}) == {"sales.orders": MoveState.DONE}
    assert ids_in(here.load_table("eu.sales.orders")) == [1, 2, 3, 4]


def test_server_that_cannot_check_is_exported_to_all_the_same(
    old_table: Table, old_source: RestSource, old_home: str, moves: Moves
) -> None:
    moves.is_foreign = True
    terms = Terms(Mode.KEEP)
    assert moves.run(old_source, terms) == {"sales.orders": MoveState.DONE}
    assert moves.run(old_source, terms) == {"sales.orders": MoveState.KEPT}
    here = RestCatalog("new", uri=moves.uri)

    old_table.append(MORE)
    assert moves.run(old_source, terms) == {"sales.orders": MoveState.DONE}
    assert ids_in(here.load_table("sales.orders")) == [1, 2, 3, 4, 4]
    # Without the report what is there is known by its file.
    moves.report.unlink()
    assert moves.run(old_source, terms) == {"sales.orders": MoveState.DONE}

    here.drop_table("sales.orders")
    here.create_table("sales.orders", ROWS.schema)
    moves.report.unlink()
    with RemoteCatalog(old_home) as theirs:
        theirs.views.create(TableIdentifier(SALES, "big"), SCHEMA, VIEW_VERSION)
    refused = {"sales.big": MoveState.REFUSED, "sales.orders": MoveState.REFUSED}
    assert moves.run(old_source, terms) == refused
    assert moves.lines["sales.orders"].codes == ("name-taken",)
    assert "no register-view" in str(moves.lines["sales.big"].reason)


def test_views_are_fenced_and_looked_on_too(old_source: RestSource, old_home: str, moves: Moves) -> None:
    big = TableIdentifier(SALES, "big")
    with RemoteCatalog(old_home) as theirs, RemoteCatalog(moves.uri) as ours:
        theirs.namespaces.create(SALES)
        theirs.views.create(big, SCHEMA, VIEW_VERSION)
        assert moves.run(old_source, Terms(Mode.LOOK_ON)) == {"sales.big": MoveState.DONE}
        updates = [{"action": "set-properties", "updates": {"a": "b"}}]
        with pytest.raises(CatalogRefused, match="read-only here"):
            ours.views.commit(big, updates)

        theirs.views.commit(big, updates)
        assert moves.run(old_source, Terms(Mode.LOOK_ON)) == {"sales.big": MoveState.DONE}
        assert ours.views.load(big).metadata["properties"]["a"] == "b"
        fence = Terms(Mode.FENCE, moved_to=moves.uri)
        assert moves.run(old_source, fence) == {"sales.big": MoveState.DONE}
        assert theirs.views.load(big).metadata["properties"][MOVED_TO] == moves.uri
        ours.views.commit(big, [{"action": "set-properties", "updates": {"a": "c"}}])


@pytest.mark.parametrize("second", [Mode.FENCE, Mode.ADOPT])
def test_fence_of_a_view_is_not_in_its_new_home(
    old_source: RestSource, old_home: str, moves: Moves, second: Mode
) -> None:
    big, updates = TableIdentifier(SALES, "big"), [{"action": "set-properties", "updates": {"a": "b"}}]
    with RemoteCatalog(old_home) as theirs, RemoteCatalog(moves.uri) as ours:
        theirs.namespaces.create(SALES)
        theirs.views.create(big, SCHEMA, VIEW_VERSION)
        assert moves.run(old_source, Terms(Mode.FENCE, moved_to=moves.uri)) == {"sales.big": MoveState.DONE}
        assert MOVED_TO in theirs.views.load(big).metadata["properties"]
        assert MOVED_TO not in ours.views.load(big).metadata["properties"]

        # It moved on at its source all the same, and is followed.
        theirs.views.commit(big, updates)
        assert moves.run(old_source, Terms(second, moved_to=moves.uri)) == {"sales.big": MoveState.DONE}
        assert ours.views.load(big).metadata["properties"] == {"a": "b"}
