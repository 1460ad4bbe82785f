"""Lists that are asked for together are read once, each after it was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from app.catalog.context.callers import Question
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, VIEWS
from app.catalog.context.listings import Page
from app.catalog.context.name_lists import SHORT, NameLists
from app.engine.model.identifiers import Namespace
from app.errors import DatabaseUnavailable, NotAllowed
from tests.builders.catalogs import with_server

A, B = Namespace(("a",)), Namespace(("b",))
ALL = Page()
Names = tuple[str, ...]


class Reading:
    """Pointers whose lists say how many were read before, and a thread that tests let go on."""

    def __init__(self, catalog: Catalog, *, is_instant: bool = False, length: int = 1) -> None:
        self.reads = 0
        self.threads = 0
        self.go = asyncio.Event()
        self.failure: Exception | None = None
        self._length = length
        self._lists = NameLists(is_instant=is_instant)
        self.catalog = with_server(catalog, pointers=self)

    def list_names(self, *_arguments: object) -> Names:
        self.reads += 1
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        return tuple(f"{self.reads}-{number}" for number in range(self._length))

    async def in_thread(self, read: Callable[[], Names]) -> Names:
        self.threads += 1
        names = read()
        await self.go.wait()
        return names

    def ask(self, *, kind: Any = TABLES, namespace: Namespace = A, page: Page = ALL) -> asyncio.Task[Any]:
        asked = self._lists.list_names(self.catalog, kind, namespace, page, self.in_thread)
        return asyncio.create_task(asked)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 30))


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_those_who_come_during_a_read_share_the_next_one(catalog: Catalog) -> None:
    async def test() -> None:
        reading = Reading(catalog)
        first = reading.ask()
        await turns()
        others = [reading.ask() for _ in range(10)]
        await turns()
        assert reading.reads == 1
        reading.go.set()

        assert (await first).items == ("1-0",)
        assert {(await other).items for other in others} == {("2-0",)}
        assert reading.reads == 2
        assert (await reading.ask()).items == ("3-0",)

    run(test())


def test_other_lists_are_read_apart(catalog: Catalog) -> None:
    async def test() -> None:
        reading = Reading(catalog)
        asked = [
            reading.ask(),
            reading.ask(namespace=B),
            reading.ask(kind=VIEWS),
            reading.ask(page=Page(None, 5)),
            reading.ask(page=Page("x", 5)),
        ]
        await turns()
        assert reading.reads == len(asked)
        reading.go.set()
        await asyncio.gather(*asked)

    run(test())


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_those_who_shared_a_read_that_failed_read_themselves(catalog: Catalog, is_cancelled: bool) -> None:
    async def test() -> None:
        reading = Reading(catalog)
        first = reading.ask()
        await turns()
        leads, follows = reading.ask(), reading.ask()
        await turns()
        if is_cancelled:
            leads.cancel()
        else:
            reading.failure = DatabaseUnavailable("gone")
        reading.go.set()
        await first

        assert (await follows).items
        with pytest.raises(asyncio.CancelledError if is_cancelled else DatabaseUnavailable):
            await leads
        assert (await reading.ask()).items

    run(test())


def test_one_who_leaves_takes_nothing_from_the_others(catalog: Catalog) -> None:
    async def test() -> None:
        reading = Reading(catalog)
        first = reading.ask()
        await turns()
        asked = [reading.ask() for _ in range(4)]
        await turns()
        asked[2].cancel()
        first.cancel()
        reading.go.set()
        await asyncio.wait([first, *asked])

        assert [task.cancelled() for task in (first, *asked)] == [True, False, False, True, False]
        assert (await reading.ask()).items

    run(test())


@pytest.mark.parametrize(("length", "threads"), [(SHORT, 1), (SHORT + 1, 3)])
def test_short_lists_are_read_on_the_loop_once_they_are_known(
    catalog: Catalog, length: int, threads: int
) -> None:
    async def test() -> None:
        reading = Reading(catalog, is_instant=True, length=length)
        reading.go.set()
        for _ in range(3):
            assert len((await reading.ask()).items) == length
        assert (reading.threads, reading.reads) == (threads, 3)

        reading = Reading(catalog, length=length)
        reading.go.set()
        for _ in range(3):
            await reading.ask()
        assert reading.threads == 3

    run(test())


def test_each_caller_is_asked_for_permission(catalog: Catalog) -> None:
    async def test() -> None:
        reading = Reading(catalog)
        reading.go.set()
        await reading.ask()

        def refuse(question: Question) -> None:
            raise NotAllowed(question.operation)

        reading.catalog = replace(
            reading.catalog, server=replace(reading.catalog.server, ask_permission=refuse)
        )
        with pytest.raises(NotAllowed):
            await reading.ask()
        assert reading.reads == 1

    run(test())
