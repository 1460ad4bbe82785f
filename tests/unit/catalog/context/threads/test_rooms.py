"""Who may have a thread when many want one."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from app.catalog.context.threads.rooms import Rooms
from app.errors import Unavailable
from app.shares import Shares


def taken(shares: Shares, party: str) -> int:
    """Take all that a party may have."""
    count = 0
    while shares.has_room(party):
        shares.take(party)
        count += 1
    return count


def test_shares_leave_room_for_the_next_party() -> None:
    shares = Shares(16)

    assert [taken(shares, party) for party in "abcde"] == [8, 4, 2, 1, 1]
    assert not shares.has_room("f")


@pytest.mark.parametrize("places", [1, 2, 3])
def test_few_places_are_shared_too(places: int) -> None:
    shares = Shares(places)

    assert taken(shares, "a") == (places + 1) // 2
    assert bool(shares)


def test_places_given_back_can_be_taken_again() -> None:
    shares = Shares(2)
    shares.take("a")
    shares.give_back("a")

    assert not shares
    assert shares.has_room("b")


async def held(stack: AsyncExitStack, rooms: Rooms, warehouse: str, table: str, most: int = 100) -> int:
    """Take rooms until there is none."""
    count = 0
    try:
        while count < most:
            await stack.enter_async_context(rooms.room_for(warehouse, table))
            count += 1
    except Unavailable:
        pass
    return count


def test_a_warehouse_gets_half_and_a_table_half_of_that() -> None:
    async def run() -> list[int]:
        rooms = Rooms(16, longest_wait_s=0.001)
        async with AsyncExitStack() as stack:
            return [
                await held(stack, rooms, "sick", "a"),
                await held(stack, rooms, "sick", "b"),
                await held(stack, rooms, "sick", "c"),
                await held(stack, rooms, "well", "a"),
                await held(stack, rooms, "", "/metrics"),
            ]

    assert asyncio.run(run()) == [4, 2, 1, 4, 3]


def test_a_process_with_one_thread_serves_one_after_the_other() -> None:
    async def run() -> int:
        rooms = Rooms(1)

        async def use(number: int) -> int:
            async with rooms.room_for(f"warehouse {number % 3}", "t"):
                await asyncio.to_thread(int)
                return 1

        return sum(await asyncio.gather(*(use(number) for number in range(30))))

    assert asyncio.run(run()) == 30


def test_those_that_wait_come_in_their_order() -> None:
    async def run() -> list[int]:
        rooms, order = Rooms(2), list[int]()

        async def use(number: int) -> None:
            async with rooms.room_for("w", "t"):
                order.append(number)
                await asyncio.to_thread(int)

        await asyncio.gather(*(use(number) for number in range(20)))
        return order

    assert asyncio.run(run()) == list(range(20))


def test_who_waits_too_long_gets_the_reason() -> None:
    async def run() -> None:
        rooms = Rooms(2, longest_wait_s=0.01)
        async with rooms.room_for("lake", "t"), rooms.room_for("lake", "t"):
            pass

    with pytest.raises(Unavailable, match=r"Warehouse lake is busy: .* waited 0.01 s and was not begun"):
        asyncio.run(run())


@pytest.mark.parametrize("first", [0, 1], ids=["the one that holds", "the one that waits"])
def test_who_is_cancelled_holds_nothing(first: int) -> None:
    async def run() -> None:
        rooms, has_begun = Rooms(2), asyncio.Event()

        async def use() -> None:
            async with rooms.room_for("w", "t"):
                has_begun.set()
                await asyncio.Event().wait()

        tasks = [asyncio.create_task(use()) for _ in range(2)]
        await has_begun.wait()
        # The other one is cancelled in the very round in which its turn may have come.
        for task in (tasks[first], tasks[1 - first]):
            task.cancel()
            await asyncio.wait([tasks[first]])
        await asyncio.wait(tasks)
        async with asyncio.timeout(10), rooms.room_for("w", "t"):
            pass
        assert not rooms._waiting
        assert not rooms._shares._tables

    asyncio.run(run())
