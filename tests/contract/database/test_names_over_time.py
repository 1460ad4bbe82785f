"""Which name each pointer has had, and when, whatever happens at the same moment."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, Row, Table, select

from app.database.dropped import DroppedMeanwhile, DroppedThings, FilesInUse
from app.database.pointers.history import Author
from app.database.pointers.moves import NameTaken
from app.database.pointers.names_over_time import begin_name
from app.database.pointers.pointer import PointerKind
from app.database.pointers.recoverable import Recovery
from app.database.schema.rows import namespace_versions, namespaces, pointer_names, pointers
from app.errors import NamespaceExists, NamespaceNotEmpty, NoSuchNamespace
from tests.contract.database.races import run_together
from tests.contract.database.stores import AUTHOR, NOW_MS, Stores, levels, name

TABLE = PointerKind.TABLE
LONG = Recovery(10**9)
ALL_NAMES = [f"{namespace}.{letter}" for namespace in ("a", "b") for letter in "xyz"]


class Server:
    """A server that makes changes of any kind, with a clock of its own."""

    def __init__(self, stores: Stores, number: int) -> None:
        self.stores = stores
        self.choice = random.Random(number)
        self.ahead_ms = self.choice.randrange(200)
        self.dropped = DroppedThings(stores.database)
        self.ticks = itertools.count(NOW_MS)
        self.number = number

    def run(self) -> None:
        for step in range(80):
            author = replace(AUTHOR, at_ms=next(self.ticks) + self.ahead_ms)
            with suppress(
                NameTaken, DroppedMeanwhile, FilesInUse, NoSuchNamespace, NamespaceExists, NamespaceNotEmpty
            ):
                deed = self.choice.choice(
                    [self.create, self.rename, self.drop, self.drop, self.undrop, self.space]
                )
                deed(author, f"{self.number}-{step}")

    def create(self, author: Author, uuid: str) -> None:
        creation = self.stores.creation(self.choice.choice(ALL_NAMES), uuid=uuid)
        self.stores.pointers.check_and_put([creation], author)

    def rename(self, author: Author, _uuid: str) -> None:
        source, destination = self.choice.choices(ALL_NAMES, k=2)
        self.stores.pointers.rename(self.stores.id, TABLE, name(source), name(destination), author)

    def drop(self, author: Author, _uuid: str) -> None:
        self.stores.pointers.drop(
            self.stores.id, name(self.choice.choice(ALL_NAMES)), TABLE, author, recovery=LONG
        )

    def undrop(self, author: Author, _uuid: str) -> None:
        found = [each for each in self.dropped.list(self.stores.id, NOW_MS) if each.pointer]
        if found:
            destination = name(self.choice.choice(ALL_NAMES))
            self.dropped.undrop(self.choice.choice(found), destination, author, with_namespaces=True)

    def space(self, author: Author, uuid: str) -> None:
        namespace = levels(self.choice.choice("ab"))
        if self.choice.random() < 0.4:
            self.stores.namespaces.drop(self.stores.id, namespace, author, recovery=LONG)
        elif self.choice.random() < 0.5:
            self.stores.namespaces.create(self.stores.id, namespace, {}, author)
        else:
            self.stores.namespaces.update_properties(self.stores.id, namespace, [], {"n": uuid}, author)


@pytest.fixture
def stirred(stores: Stores) -> Stores:
    """A database on which several servers have made changes at once, whose clocks differ."""
    for namespace in "ab":
        stores.add_namespace(namespace)
    assert run_together([Server(stores, number).run for number in range(6)]) == [None] * 6
    return stores


def test_each_pointer_has_one_name_at_a_time(stirred: Stores) -> None:
    there = stirred.database.read(
        lambda connection: connection.execute(
            select(pointers.c.id, namespaces.c.key, pointers.c.name).join_from(pointers, namespaces)
        ).all()
    )
    stretches = rows_of(stirred, pointer_names)

    assert sorted(
        (row.pointer_id, row.namespace_key, row.name) for row in stretches if row.until_ms is None
    ) == sorted(there)
    assert each_ends_before_the_next(stretches, lambda row: row.pointer_id) > 2


def test_each_name_has_one_bearer_at_a_time(stirred: Stores) -> None:
    stretches = [
        row for row in rows_of(stirred, pointer_names) if row.until_ms is None or row.until_ms > row.from_ms
    ]

    assert each_ends_before_the_next(stretches, lambda row: (row.namespace_key, row.name)) > 2


def test_each_namespace_is_there_once_at_a_time(stirred: Stores) -> None:
    versions = rows_of(stirred, namespace_versions)

    still = sorted((row.name, row.properties) for row in versions if row.until_ms is None)
    assert still == sorted((row.name, row.properties) for row in rows_of(stirred, namespaces))
    assert each_ends_before_the_next(versions, lambda row: row.name) > 2


def test_a_name_that_was_freed_after_the_look_is_taken_later(stores: Stores) -> None:
    """Another server, whose clock is ahead, has made and dropped it between two statements."""
    stores.add_namespace("a")
    (space,) = rows_of(stores, namespaces)
    ahead = replace(AUTHOR, at_ms=NOW_MS + 500)
    stores.pointers.check_and_put([stores.creation("a.x", uuid="theirs")], ahead)
    stores.pointers.drop(stores.id, name("a.x"), TABLE, ahead, recovery=LONG)
    looked = [NOW_MS, NOW_MS + 500]
    attempts: list[int] = []

    def make(connection: Connection) -> None:
        attempts.append(looked[len(attempts)])
        values = {
            "namespace_id": space.id,
            "kind": TABLE,
            "name": "x",
            "uuid": "ours",
            "metadata_location": "file:/x",
            "created_ms": attempts[-1],
            "updated_ms": attempts[-1],
            "registration": 0,
        }
        made = connection.execute(pointers.insert().values(values).returning(pointers.c.id)).scalar_one()
        begin_name(connection, made)

    stores.database.write(make)

    assert attempts == looked
    assert each_ends_before_the_next(rows_of(stores, pointer_names), lambda row: row.name) == 2


def each_ends_before_the_next(rows: Sequence[Row[Any]], key: Callable[[Row[Any]], object]) -> int:
    """Check the rows of each key, in their order, and return how many the longest has."""
    found = defaultdict[object, list[Row[Any]]](list)
    for row in rows:
        found[key(row)].append(row)
    for each in found.values():
        for before, after in itertools.pairwise(each):
            assert before.until_ms is not None
            assert before.until_ms <= after.from_ms
    return max(map(len, found.values()))


def rows_of(stores: Stores, table: Table) -> list[Row[Any]]:
    query = select(table).order_by(table.c.id)
    return list(stores.database.read(lambda connection: connection.execute(query).all()))
