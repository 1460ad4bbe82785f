"""Bodies in gzip: made beside other requests, wherever that is possible."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Iterator

import pytest

from app.api.compression import SLOW_GZIP_BYTES, compress, made_beside
from app.api.responses.packed_answers import PackedAnswers

LONG = b"x" * SLOW_GZIP_BYTES


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of threads that could not be started."""
    start, names = threading.Thread.start, list[str]()

    def refuse(thread: threading.Thread) -> None:
        if thread.name.startswith("asyncio_"):
            names.append(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        yield names


def test_long_body_is_made_in_a_thread() -> None:
    makers: list[threading.Thread] = []

    def make() -> bytes:
        makers.append(threading.current_thread())
        return b"made"

    async def ask() -> bytes:
        return await made_beside(make)

    assert asyncio.run(ask()) == b"made"
    assert makers[0] is not threading.current_thread()


def test_long_body_is_made_where_no_thread_can_be_started(refused: list[str]) -> None:
    """What it answers has happened: a commit that landed must not be answered with an error."""

    async def make() -> list[bytes]:
        return [await made_beside(lambda: compress(LONG)), await PackedAnswers(1 << 30).pack(1, [LONG])]

    assert [gzip.decompress(body) for body in asyncio.run(make())] == [LONG, LONG]
    assert len(refused) == 2
