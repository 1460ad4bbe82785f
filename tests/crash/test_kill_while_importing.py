"""An importer that is killed at any step: the next run brings everything to its end, and no table is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.properties.own_properties import MOVED_TO
from app.moving.choices import Choice
from app.moving.reports import MoveState
from app.moving.rest_source import RestSource
from app.moving.terms import Mode, Terms
from tests.builders.databases import migrated_database_of
from tests.builders.http_catalog import SCHEMA
from tests.builders.moves import Moves
from tests.servers.icetower import icetower_process
from tests.servers.importer import import_until_killed
from tests.servers.postgres import PostgresServer

SALES = Namespace(("sales",))
TABLES = [TableIdentifier(SALES, f"orders_{number}") for number in range(3)]
STEPS = ("begun", "marked", "registered", "dropped")


@dataclass
class Homes:
    """Two servers whose warehouses lie in one folder."""

    old: str
    new: str
    folder: Path


@pytest.fixture(
    scope="module",
    params=["sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.nightly])],
)
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homes]:
    folder = tmp_path_factory.mktemp("homes")
    settings: dict[str, dict[str, str]] = {"old": {}, "new": {}}
    for name, more in settings.items():
        (folder / name).mkdir()
        if request.param == "postgres":
            postgres: PostgresServer = request.getfixturevalue("postgres_server")
            more["database_url"] = postgres.url(migrated_database_of(postgres))
        more["default_warehouse_location"] = str(folder / "lake")
    with (
        icetower_process(folder / "old", **settings["old"]) as old,
        icetower_process(folder / "new", **settings["new"]) as new,
    ):
        yield Homes(old, new, folder)


@pytest.fixture
def homes(servers: Homes) -> Iterator[Homes]:
    """Return the two servers, with tables in the old one only."""
    with RemoteCatalog(servers.old) as catalog:
        catalog.namespaces.create(SALES, {"owner": "anna"})
        for name in TABLES:
            catalog.tables.create(name, SCHEMA)
            catalog.tables.commit(name, [{"action": "set-properties", "updates": {"note": name.name}}])
    yield servers
    for uri in (servers.old, servers.new):
        with RemoteCatalog(uri) as catalog:
            for name in catalog.tables.list(SALES):
                catalog.tables.drop(name)
            catalog.namespaces.drop(SALES)


def notes_in(uri: str) -> dict[TableIdentifier, str]:
    with RemoteCatalog(uri) as catalog:
        return {
            name: catalog.tables.load(name).metadata["properties"]["note"]
            for name in catalog.tables.list(SALES)
        }


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("mode", [Mode.ADOPT, Mode.FENCE, Mode.LOOK_ON])
def test_run_after_a_kill_ends_where_the_killed_one_would_have(
    homes: Homes, tmp_path: Path, mode: Mode, step: str, times: int
) -> None:
    report = tmp_path / "report.ndjson"
    import_until_killed(homes.old, homes.new, report, mode, step, times)
    expected = {name: name.name for name in TABLES}
    # At no moment is a table in neither of the two.
    assert notes_in(homes.old) | notes_in(homes.new) == expected

    moves = Moves(homes.new, report)
    with RemoteCatalog(homes.old) as theirs:
        source = RestSource(theirs, homes.old)
        states = moves.run(source, Terms(mode, moved_to=homes.new))
        assert set(states.values()) <= {MoveState.DONE, MoveState.KEPT}
        again = moves.run(source, Terms(mode, moved_to=homes.new))
    assert set(again.values()) <= {MoveState.KEPT}

    assert notes_in(homes.new) == expected
    assert notes_in(homes.old) == ({} if mode is Mode.ADOPT else expected)
    with RemoteCatalog(homes.new) as catalog:
        for name in TABLES:
            properties = catalog.tables.load(name).metadata["properties"]
            assert MOVED_TO not in properties
            assert (properties.get("gc.enabled") == "false") is (mode is Mode.LOOK_ON)


@pytest.mark.slow
def test_commit_that_came_between_the_runs_is_taken_along(homes: Homes, tmp_path: Path) -> None:
    report = tmp_path / "report.ndjson"
    import_until_killed(homes.old, homes.new, report, Mode.ADOPT, "registered", 1)
    with RemoteCatalog(homes.old) as theirs:
        updates = [{"action": "set-properties", "updates": {"note": "later"}}]
        theirs.tables.commit(TABLES[0], updates)

        states = Moves(homes.new, report).run(RestSource(theirs, homes.old))

    assert set(states.values()) == {MoveState.DONE}
    assert notes_in(homes.new)[TABLES[0]] == "later"


@pytest.mark.slow
def test_commits_on_both_sides_after_a_kill_are_never_overwritten(homes: Homes, tmp_path: Path) -> None:
    report = tmp_path / "report.ndjson"
    import_until_killed(homes.old, homes.new, report, Mode.ADOPT, "registered", 1)
    for uri in (homes.old, homes.new):
        with RemoteCatalog(uri) as catalog:
            catalog.tables.commit(TABLES[0], [{"action": "set-properties", "updates": {"note": uri}}])

    moves = Moves(homes.new, report)
    with RemoteCatalog(homes.old) as theirs:
        states = moves.run(RestSource(theirs, homes.old))

    assert states["sales.orders_0"] is MoveState.REFUSED
    assert "diverged" in moves.lines["sales.orders_0"].codes
    assert notes_in(homes.old)[TABLES[0]] == homes.old
    assert notes_in(homes.new)[TABLES[0]] == homes.new


def make_anew(uri: str, name: TableIdentifier) -> None:
    """Make another table of a name; drop the one that has it, if it is there."""
    with RemoteCatalog(uri) as catalog:
        if catalog.tables.exists(name):
            catalog.tables.drop(name)
        catalog.tables.create(name, SCHEMA, properties={"note": "another"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "step"),
    [(Mode.ADOPT, "dropped"), (Mode.ADOPT, "registered"), (Mode.KEEP, "registered")],
    ids=str,
)
@pytest.mark.parametrize("is_foreign", [False, True], ids=["icetower", "another server"])
def test_another_table_of_the_name_never_takes_the_place_of_one_that_was_moved(
    homes: Homes, tmp_path: Path, mode: Mode, step: str, *, is_foreign: bool
) -> None:
    """What was adopted is in no other catalog: to register another one over it would lose it."""
    report = tmp_path / "report.ndjson"
    import_until_killed(homes.old, homes.new, report, mode, step, 1)
    make_anew(homes.old, TABLES[0])

    moves = Moves(homes.new, report, is_foreign)
    with RemoteCatalog(homes.old) as theirs:
        moves.run(RestSource(theirs, homes.old), Terms(mode))

    assert moves.lines["sales.orders_0"].state is MoveState.REFUSED
    assert "name-taken" in moves.lines["sales.orders_0"].codes
    assert notes_in(homes.new)[TABLES[0]] == TABLES[0].name
    assert notes_in(homes.old)[TABLES[0]] == "another"


@pytest.mark.slow
@pytest.mark.parametrize("is_foreign", [False, True], ids=["icetower", "another server"])
def test_table_made_after_an_adoption_is_another_one(
    homes: Homes, tmp_path: Path, *, is_foreign: bool
) -> None:
    moves = Moves(homes.new, tmp_path / "report.ndjson", is_foreign)
    with RemoteCatalog(homes.old) as theirs:
        source = RestSource(theirs, homes.old)
        assert set(moves.run(source).values()) == {MoveState.DONE}
        make_anew(homes.old, TABLES[0])

        assert moves.run(source)["sales.orders_0"] is MoveState.REFUSED

    assert notes_in(homes.new)[TABLES[0]] == TABLES[0].name
    assert notes_in(homes.old)[TABLES[0]] == "another"


@pytest.mark.slow
def test_one_that_comes_while_the_other_is_moved_is_left_where_it_is(homes: Homes, tmp_path: Path) -> None:
    moves = Moves(homes.new, tmp_path / "report.ndjson")
    begun: list[str] = []

    def step(name: str) -> None:
        begun.append(name)
        if begun.count("registered") == 1 and name == "registered":
            make_anew(homes.old, TABLES[0])

    choice = Choice(identifiers=frozenset({TABLES[0]}))
    with RemoteCatalog(homes.old) as theirs:
        states = moves.run(RestSource(theirs, homes.old), Terms(Mode.ADOPT, choice, step=step))

    assert states == {"sales.orders_0": MoveState.FAILED}
    assert "is a table already" in str(moves.lines["sales.orders_0"].reason)
    assert notes_in(homes.new) == {TABLES[0]: TABLES[0].name}
    assert notes_in(homes.old)[TABLES[0]] == "another"
