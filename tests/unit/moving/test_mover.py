"""Moving one table: which one it is, and whether the source has it still, is not guessed."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.client.catalog import RemoteCatalog
from app.client.request_parts import JsonObject
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.properties.own_properties import MOVED_TO
from app.fileio.schemes import files_for
from app.moving.choices import Choice, PathMap
from app.moving.folder_source import FolderSource
from app.moving.reports import MoveReport, MoveState
from app.moving.rest_source import RestSource
from app.moving.runs import recheck
from app.moving.sources import EntryKind, SourceFailed
from app.moving.terms import Mode, Terms
from app.testing import icetower_catalog
from tests.builders.http_catalog import SCHEMA, VIEW_VERSION
from tests.builders.moves import Moves
from tests.builders.parquet_files import table_of

ORDERS = TableIdentifier(Namespace(("sales",)), "orders")
COLUMN = {"id": 1, "name": "id", "type": "long", "required": False}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def moves(lake: Path, tmp_path: Path) -> Iterator[Moves]:
    with icetower_catalog(warehouse_location=str(lake)) as uri:
        yield Moves(uri, tmp_path / "report.ndjson")


def make_anew(lake: Path) -> str:
    """Make another table in the same folder, as a Hadoop catalog does; return its uuid."""
    place, new = lake / "sales" / "orders", str(uuid.uuid4())
    shutil.rmtree(place, ignore_errors=True)
    (place / "metadata").mkdir(parents=True)
    document = table_of([COLUMN]).to_object() | {"table-uuid": new, "location": f"file://{place}"}
    (place / "metadata" / "v1.metadata.json").write_text(json.dumps(document))
    return new


def registered(moves: Moves) -> str:
    """Return the uuid of the table that is registered."""
    with RemoteCatalog(moves.uri) as catalog:
        return str(catalog.tables.load(ORDERS).metadata["table-uuid"])


def test_another_table_at_the_place_of_one_that_was_moved_is_not_called_moved(
    moves: Moves, lake: Path
) -> None:
    first = make_anew(lake)
    assert moves.run(FolderSource(f"file://{lake}", files_for({}))) == {"sales.orders": MoveState.DONE}
    make_anew(lake)

    assert moves.run(FolderSource(f"file://{lake}", files_for({}))) == {"sales.orders": MoveState.REFUSED}
    assert "name-taken" in moves.lines["sales.orders"].codes
    assert registered(moves) == first


def test_recheck_knows_another_table_at_the_same_place(moves: Moves, lake: Path) -> None:
    make_anew(lake)
    moves.run(FolderSource(f"file://{lake}", files_for({})))
    make_anew(lake)

    source = FolderSource(f"file://{lake}", files_for({}))
    ((line, change),) = recheck(source, MoveReport(moves.report, source.name, moves.uri, writes=False))

    assert change == f"the source has another table or view at {line.source_location}"


def test_a_target_that_finds_another_table_at_the_place_registers_none(
    moves: Moves, lake: Path, tmp_path: Path
) -> None:
    """Its storage settings may be those of another store for a while."""
    theirs = tmp_path / "theirs"
    make_anew(theirs)
    make_anew(lake)
    terms = Terms(Mode.ADOPT, paths=PathMap([(f"file://{theirs}", f"file://{lake}")]))

    moves.run(FolderSource(f"file://{theirs}", files_for({})), terms)

    assert moves.lines["sales.orders"].state is MoveState.REFUSED
    assert "other-store" in moves.lines["sales.orders"].codes


def test_who_looks_on_is_shown_what_the_source_has_by_that_name_now(moves: Moves, lake: Path) -> None:
    terms = Terms(Mode.LOOK_ON)
    make_anew(lake)
    moves.run(FolderSource(f"file://{lake}", files_for({})), terms)
    second = make_anew(lake)

    assert moves.run(FolderSource(f"file://{lake}", files_for({})), terms) == {"sales.orders": MoveState.DONE}
    assert registered(moves) == second
    assert moves.run(FolderSource(f"file://{lake}", files_for({})), terms) == {"sales.orders": MoveState.KEPT}


def test_a_file_that_the_target_lost_is_said_to_be_missing_there(
    moves: Moves, lake: Path, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    make_anew(lake)
    shutil.copytree(lake, theirs)
    terms = Terms(Mode.LOOK_ON, paths=PathMap([(f"file://{theirs}", f"file://{lake}")]))
    source = FolderSource(f"file://{theirs}", files_for({}))
    assert moves.run(source, terms) == {"sales.orders": MoveState.DONE}
    shutil.rmtree(lake / "sales")

    assert moves.run(source, terms) == {"sales.orders": MoveState.REFUSED}
    assert "metadata-missing" in moves.lines["sales.orders"].codes


@pytest.mark.parametrize("step", ["begun", "registered"])
def test_a_source_that_does_not_find_a_file_has_not_let_the_table_go(
    moves: Moves, lake: Path, step: str
) -> None:
    with icetower_catalog(warehouse_location=str(lake)) as uri, RemoteCatalog(uri) as theirs:
        theirs.namespaces.create(ORDERS.namespace)
        made = theirs.tables.create(ORDERS, SCHEMA)
        file = Path(str(made.metadata_location).removeprefix("file://"))
        hidden = file.with_suffix(".hidden")

        def hide(name: str) -> None:
            if name == step:
                file.rename(hidden)

        source = RestSource(theirs, uri)
        assert moves.run(source, Terms(Mode.ADOPT, step=hide)) == {"sales.orders": MoveState.FAILED}
        assert f"does not find the metadata file of {ORDERS}" in str(moves.lines["sales.orders"].reason)
        assert moves.run(source) == {"sales.orders": MoveState.FAILED}

        hidden.rename(file)
        assert moves.run(source) == {"sales.orders": MoveState.DONE}
        assert not theirs.tables.exists(ORDERS)


@pytest.fixture
def theirs(lake: Path) -> Iterator[RemoteCatalog]:
    """A catalog that tables and views are moved out of."""
    with icetower_catalog(warehouse_location=str(lake)) as uri, RemoteCatalog(uri) as catalog:
        catalog.namespaces.create(ORDERS.namespace)
        yield catalog


def drop(catalog: RemoteCatalog) -> None:
    catalog.tables.drop(ORDERS)


def rename(catalog: RemoteCatalog) -> None:
    catalog.tables.rename(ORDERS, TableIdentifier(ORDERS.namespace, "others"))


def replace(catalog: RemoteCatalog) -> None:
    catalog.tables.drop(ORDERS)
    catalog.tables.create(ORDERS, SCHEMA)


@pytest.mark.parametrize(
    ("mode", "deed", "is_foreign"),
    [
        (Mode.ADOPT, drop, True),
        (Mode.ADOPT, rename, False),
        (Mode.ADOPT, replace, True),
        (Mode.FENCE, replace, False),
    ],
)
def test_what_the_target_let_go_meanwhile_stays_at_its_source(
    moves: Moves,
    theirs: RemoteCatalog,
    mode: Mode,
    deed: Callable[[RemoteCatalog], None],
    *,
    is_foreign: bool,
) -> None:
    """A mover may be stopped for hours between two steps; the table would be in no catalog."""
    made, moves.is_foreign = theirs.tables.create(ORDERS, SCHEMA), is_foreign

    def step(name: str) -> None:
        if name == "registered":
            with RemoteCatalog(moves.uri) as catalog:
                deed(catalog)

    source = RestSource(theirs, "theirs")

    assert moves.run(source, Terms(mode, step=step)) == {"sales.orders": MoveState.FAILED}
    assert "was dropped, renamed or replaced" in str(moves.lines["sales.orders"].reason)
    assert theirs.tables.load(ORDERS).metadata["table-uuid"] == made.metadata["table-uuid"]


@pytest.mark.parametrize(("mode", "last"), [(Mode.ADOPT, "registered"), (Mode.FENCE, "dropped")])
@pytest.mark.parametrize("kind", ["table", "view"])
def test_commits_after_a_broken_run_are_kept_and_hold_up_nothing(
    moves: Moves, theirs: RemoteCatalog, kind: EntryKind, mode: Mode, last: str
) -> None:
    """A view has no log of its files by which the target would be known to have come from there."""
    if kind == "view":
        theirs.views.create(ORDERS, SCHEMA, VIEW_VERSION)
    else:
        theirs.tables.create(ORDERS, SCHEMA)
    source = RestSource(theirs, "theirs")

    def run_until(last: str) -> dict[str, MoveState]:
        def step(name: str) -> None:
            if name == last:
                raise SourceFailed("it was ended")

        return moves.run(source, Terms(mode, step=step))

    assert run_until(last) == {"sales.orders": MoveState.FAILED}
    with RemoteCatalog(moves.uri) as ours:
        updates: list[JsonObject] = [
            {"action": "remove-properties", "removals": [MOVED_TO]},
            {"action": "set-properties", "updates": {"note": "ours"}},
        ]
        ours.named(kind).commit(ORDERS, updates)

        assert run_until("begun") == {"sales.orders": MoveState.FAILED}
        assert run_until("") == {"sales.orders": MoveState.DONE}
        assert ours.named(kind).load(ORDERS).property("note") == "ours"
    assert theirs.named(kind).exists(ORDERS) is (mode is Mode.FENCE)


def test_what_was_made_anew_before_it_was_registered_has_its_own_uuid_in_the_report(
    moves: Moves, theirs: RemoteCatalog
) -> None:
    theirs.tables.create(ORDERS, SCHEMA)

    def step(name: str) -> None:
        if name == "begun":
            replace(theirs)

    moves.run(RestSource(theirs, "theirs"), Terms(Mode.ADOPT, step=step))

    assert moves.lines["sales.orders"].uuid == registered(moves)


def test_no_namespace_is_made_for_a_table_that_goes_to_another_one(
    moves: Moves, lake: Path, theirs: RemoteCatalog
) -> None:
    theirs.namespaces.update_properties(ORDERS.namespace, {"owner": "anna"})
    theirs.tables.create(ORDERS, SCHEMA)
    choice = Choice(frozenset({ORDERS}), renamed={("sales", "orders"): ("archive", "orders")})

    states = moves.run(RestSource(theirs, "theirs"), Terms(Mode.ADOPT, choice))

    with RemoteCatalog(moves.uri) as catalog:
        assert states == {"sales.orders": MoveState.DONE}
        assert [*catalog.namespaces.list()] == [Namespace(("archive",))]
        assert catalog.namespaces.load(Namespace(("archive",)))["owner"] == "anna"
