"""Changes that go side by side in one thread, and what each leaves."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random
from string import ascii_letters, digits

import pytest

from app.catalog.context.threads.side_by_side import SideBySide
from app.database.connections.database import Database
from app.database.outcomes.receipt import ID_LENGTH, ReceiptHead, id_of_time
from app.database.pointers.history import PointerEvent
from app.database.pointers.pointer import Pointer
from app.database.pointers.pointers import PutOutcome
from app.errors import IcetowerError
from tests.builders.databases import migrated_database_of
from tests.contract.database.stores import NOW_MS, Stores
from tests.servers.postgres import PostgresServer

Found = PutOutcome | BaseException
_numbers = itertools.count(1)


def head(key: str | None = None) -> ReceiptHead:
    """Return what the receipt of another request begins with."""
    commit_id = id_of_time(NOW_MS + next(_numbers)).ljust(ID_LENGTH, "0")
    return ReceiptHead(commit_id, "commit_table", "main", "alice", "request-1", key, NOW_MS, "job-1")


def longer_than_an_index_takes() -> str:
    """Return a text that Postgres puts into no index: it repeats nothing, and so is not compressed."""
    return "".join(Random(7).choices(ascii_letters + digits, k=3_000))


def side_by_side(*works: Callable[[], PutOutcome]) -> list[Found]:
    """Do all of it in this thread, and return what comes of each."""
    found: list[Found] = [PutOutcome.UNKNOWN] * len(works)

    def do(number: int) -> None:
        try:
            found[number] = works[number]()
        except IcetowerError as error:
            found[number] = error

    with ThreadPoolExecutor(8) as threads:
        SideBySide(threads.submit).go([partial(do, number) for number in range(len(works))], lambda: None)
    return found


def last_event(stores: Stores, pointer: Pointer) -> PointerEvent:
    return stores.pointers.history(pointer.id, limit=1)[0]


class StoresOnPostgres:
    """Tests of locks and wires, which SQLite has not."""

    @pytest.fixture
    def database_name(self, postgres_server: PostgresServer) -> Iterator[str]:
        name = migrated_database_of(postgres_server)
        yield name
        postgres_server.drop_database(name)

    @pytest.fixture
    def stores(self, postgres_server: PostgresServer, database_name: str) -> Iterator[Stores]:
        database = Database.open(postgres_server.url(database_name))
        yield Stores.on(database)
        database.close()
