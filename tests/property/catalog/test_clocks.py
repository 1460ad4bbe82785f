"""Servers whose clocks differ: whatever they do, and in whichever order, the past is one that makes sense."""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from app.catalog import named, namespaces
from app.catalog.commits.landing import land
from app.catalog.commits.table_commits import TableCommit
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, VIEWS
from app.catalog.context.server import Server
from app.catalog.past.dropped import NewName, Wanted, undrop
from app.catalog.views import NewView
from app.database.connections.database import Database
from app.database.namespace_keys import namespace_of
from app.database.schema import rows
from app.engine.change.updates import SetProperties
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.errors import IcetowerError
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import START_MS, Clock
from tests.builders.tables import SCHEMA, new_table, view_version
from tests.property.catalog.lives import ground_on
from tests.property.catalog.worlds import World, look

OUTER, INNER = Namespace(("a",)), Namespace(("a", "b"))
AHEAD_MS = (0, 1_000, 7)
"""By how much each server's clock is ahead of the first one's."""
WORKERS, REQUESTS = 4, 60
_numbers = itertools.count(1)
Step = tuple[int, str, int, int]


def steps() -> st.SearchStrategy[list[Step]]:
    """Which server does what, with which of some names."""
    what = st.sampled_from(
        ["create", "create", "view", "drop", "drop", "rename", "undrop", "commit", "make", "leave", "leave"]
    )
    return st.lists(st.tuples(st.integers(0, 2), what, st.integers(0, 3), st.integers(0, 3)), max_size=25)


def names() -> list[TableIdentifier]:
    return [TableIdentifier(namespace, name) for namespace in (OUTER, INNER) for name in "tu"]


def do(catalog: Catalog, what: str, first: int, second: int) -> tuple[str, ...]:
    """Do something, and return the metadata files of a commit."""
    one, other = names()[first], names()[second]
    match what:
        case "create":
            named.create(catalog, new_table(one))
        case "view":
            named.create(catalog, NewView(one, SCHEMA, view_version(), None, {}))
        case "drop":
            found = catalog.find(one)
            kind: Any = TABLES if found is None or found.kind == "table" else VIEWS
            named.drop(catalog, kind, one)
        case "rename":
            named.rename(catalog, TABLES, one, other)
        case "undrop":
            new = NewName(other.namespace.levels, other.name, with_namespace=True)
            undrop(catalog, Wanted(namespace=one.namespace, name=one.name), new)
        case "commit":
            mark = [SetProperties(updates={"mark": str(next(_numbers))})]
            done = land(catalog, [TableCommit(each, [], mark) for each in sorted({one, other})])
            return tuple(str(each.loaded.location) for each in done)
        case "make":
            namespaces.create_namespace(catalog, one.namespace, {"k": str(first)})
        case _:
            namespaces.drop_namespace(catalog, one.namespace)
    return ()


def check_every_time(catalog: Catalog) -> None:
    """Compare what is shown of each moment at which anything changed with what can have been."""
    database: Database = catalog.server.orphan_runs._database

    def times(column: Any) -> set[int]:
        return {at for at in database.read(lambda it: it.scalars(select(column)).all()) if at}

    pointer_names, versions = rows.pointer_names.c, rows.namespace_versions.c
    columns = (
        rows.pointer_history.c.at_ms, pointer_names.from_ms, pointer_names.until_ms, versions.from_ms,
        versions.until_ms,
    )  # fmt: skip
    moments = {at for column in columns for at in times(column)}
    kept = database.read(lambda it: it.execute(select(rows.pointer_names)).all())
    for at_ms in sorted(moments):
        world = look([catalog], at_ms)
        had = [
            each
            for each in kept
            if each.from_ms <= at_ms and (each.until_ms is None or each.until_ms > at_ms)
        ]
        listed = {identifier for _, identifier in world.names}
        assert sorted(TableIdentifier(namespace_of(each.namespace_key), each.name) for each in had) == sorted(
            listed
        ), f"a name without its namespace, or twice, at {at_ms - START_MS}"
    assert look([catalog], max(moments, default=START_MS)) == look([catalog])


def clocks_apart() -> list[Callable[[], int]]:
    """Return clocks that run at one speed, each ahead of the first one."""
    clock = Clock()

    def ahead(by_ms: int) -> Callable[[], int]:
        return lambda: clock() + by_ms

    return [ahead(by_ms) for by_ms in AHEAD_MS]


@dataclass
class Workers:
    """Threads that work on servers with clocks of their own, and one that looks at the past meanwhile."""

    catalogs: list[Catalog]
    running: dict[int, int] = field(default_factory=dict)
    """When the request of each worker began, by the slowest clock."""
    seen: dict[int, World] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    together: list[tuple[str, ...]] = field(default_factory=list)
    """Metadata files of each transaction that landed."""

    def work(self, number: int) -> None:
        """Change something again and again."""
        chance, catalog = random.Random(number), self.catalogs[number % len(self.catalogs)]
        for _ in range(REQUESTS):
            with self.lock:
                self.running[number] = self.catalogs[0].now_ms()
            what = chance.choice(
                ["create", "create", "drop", "rename", "undrop", "commit", "commit", "commit"]
            )
            with contextlib.suppress(IcetowerError):
                landed = do(catalog, what, chance.randrange(4), chance.randrange(4))
                if landed:
                    self.together.append(landed)
        with self.lock:
            del self.running[number]

    def look(self, number: int) -> None:
        """Look at moments that all running requests have come after."""
        chance = random.Random(number)
        while True:
            with self.lock:
                oldest_ms = min(self.running.values(), default=None)
            if oldest_ms is None:
                return
            at_ms = oldest_ms - 1 - chance.randrange(200)
            found = look(self.catalogs[:1], at_ms)
            assert self.seen.setdefault(at_ms, found) == found


def test_what_was_seen_of_the_past_stays(base_server: Server) -> None:
    """Threads change all on servers of three clocks, one looks: later the same is seen, and whole transactions."""
    clocks = clocks_apart()
    ground = ground_on(replace(base_server, now_ms=clocks[0]), MemoryFiles(), "memory:/")
    here = ground.catalogs[0]
    namespaces.create_namespace(here, INNER, {})
    workers = Workers([replace(here, server=replace(here.server, now_ms=clock)) for clock in clocks])
    workers.running = dict.fromkeys(range(WORKERS), here.now_ms())

    with ThreadPoolExecutor(WORKERS + 1) as pool:
        each = [pool.submit(workers.work, number) for number in range(WORKERS)]
        each.append(pool.submit(workers.look, WORKERS))
        for future in each:
            future.result()

    for at_ms, found in workers.seen.items():
        assert look([here], at_ms) == found
    assert len(workers.seen) > 3
    check_every_time(here)
    assert len(workers.together) > 3
    check_transactions(here, workers.together)


def check_transactions(catalog: Catalog, together: Sequence[tuple[str, ...]]) -> None:
    """Compare the times of what landed together, and of each pointer's events one after the other."""
    database: Database = catalog.server.orphan_runs._database
    events = select(rows.pointer_history).order_by(rows.pointer_history.c.sequence)
    history = database.read(lambda it: it.execute(events).all())
    began = {each.location: each.at_ms for each in reversed(history) if each.location}
    for locations in together:
        assert len({began[location] for location in locations}) == 1, "half of a transaction can be seen"
    last: dict[int, int] = {}
    for event in history:
        assert event.at_ms >= last.get(event.pointer_id, 0), "a table goes backwards"
        last[event.pointer_id] = event.at_ms


def test_past_makes_sense_however_clocks_differ(base_server: Server) -> None:
    done: list[int] = []

    @settings(max_examples=300)
    @given(plan=steps())
    def check(plan: Sequence[Step]) -> None:
        clocks = clocks_apart()
        ground = ground_on(replace(base_server, now_ms=clocks[0]), MemoryFiles(), "memory:/")
        (here, _) = ground.catalogs
        catalogs = [replace(here, server=replace(here.server, now_ms=clock)) for clock in clocks]
        namespaces.create_namespace(catalogs[0], INNER, {})
        landed = 0
        for server, what, first, second in plan:
            try:
                do(catalogs[server], what, first, second)
                landed += 1
            except IcetowerError:
                continue  # a refusal is an answer too
        check_every_time(here)
        done.append(landed)

    check()

    assert sum(done) > len(done), "most plans have to change something to show anything"
