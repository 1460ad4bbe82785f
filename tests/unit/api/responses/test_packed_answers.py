"""Compressed answers, kept by what stands for them."""

from __future__ import annotations

import asyncio
import gzip

import pytest

from app.api.compression import SLOW_GZIP_BYTES
from app.api.responses.packed_answers import PackedAnswers

ROOM = 1 << 30


@pytest.mark.parametrize("size", [5000, SLOW_GZIP_BYTES])
def test_packed_answer_is_kept_under_its_key(size: int) -> None:
    answers = PackedAnswers(ROOM)

    async def pack() -> list[bytes]:
        return [await answers.pack(key, [b"x" * size, end]) for key, end in ((1, b"a"), (1, b"b"), (2, b"c"))]

    first, again, other = asyncio.run(pack())

    assert gzip.decompress(first) == b"x" * size + b"a"
    assert again is first
    assert gzip.decompress(other) == b"x" * size + b"c"


def test_without_room_nothing_is_kept() -> None:
    answers = PackedAnswers(0)

    async def pack() -> list[bytes]:
        return [await answers.pack(1, [b"x" * 5000, end]) for end in (b"a", b"b")]

    first, again = asyncio.run(pack())

    assert gzip.decompress(first) == b"x" * 5000 + b"a"
    assert gzip.decompress(again) == b"x" * 5000 + b"b"


def test_long_answer_that_many_ask_for_at_once_is_packed_once() -> None:
    answers = PackedAnswers(ROOM)

    async def pack() -> list[bytes]:
        return await asyncio.gather(*(answers.pack(1, [b"x" * SLOW_GZIP_BYTES]) for _ in range(8)))

    first, *others = asyncio.run(pack())

    assert all(other is first for other in others)


def test_client_that_goes_leaves_the_others_their_long_answer() -> None:
    answers = PackedAnswers(ROOM)

    async def pack() -> bytes:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(answers.pack(1, [b"x" * SLOW_GZIP_BYTES])) for _ in range(3)]
            group.create_task(cancel_first(tasks))
        assert tasks[0].cancelled()
        assert tasks[1].result() is tasks[2].result()
        return tasks[1].result()

    async def cancel_first(tasks: list[asyncio.Task[bytes]]) -> None:
        # It begins behind them: they are waiting by then.
        tasks[0].cancel()

    assert gzip.decompress(asyncio.run(pack())) == b"x" * SLOW_GZIP_BYTES
