"""Caches: what they keep within their budget, and that one thread reads for all."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from app.errors import FilesUnavailable
from app.formats.caches import BoundedCache, ReadThroughCache

READERS = 8


def test_what_was_used_longest_ago_goes_first() -> None:
    cache: BoundedCache[str] = BoundedCache(10)
    for key in "abcde":
        cache.put(key, key.upper(), 2)

    assert cache.find("a") == "A"
    cache.put("f", "F", 2)

    assert cache.find("b") is None
    assert [cache.find(key) for key in "acdef"] == ["A", "C", "D", "E", "F"]
    assert cache.held_bytes == 10


@pytest.mark.parametrize(
    ("cache", "most"), [(BoundedCache[str](100), 25), (BoundedCache[str](100, 0.75), 75)]
)
def test_a_value_over_its_share_of_the_budget_is_not_kept(cache: BoundedCache[str], most: int) -> None:
    cache.put("larger", "x", most + 1)
    assert (cache.find("larger"), cache.held_bytes) == (None, 0)

    cache.put("large", "y", most)
    assert (cache.find("large"), cache.held_bytes) == ("y", most)


def test_a_value_put_again_counts_once() -> None:
    cache: BoundedCache[str] = BoundedCache(100)

    cache.put("a", "old", 20)
    cache.put("a", "new", 10)

    assert (cache.find("a"), cache.held_bytes) == ("new", 10)


def test_a_forgotten_value_leaves_its_room() -> None:
    cache: BoundedCache[str] = BoundedCache(100)
    cache.put("a", "A", 20)

    cache.forget("a")
    cache.forget("never there")

    assert (cache.find("a"), cache.held_bytes) == (None, 0)


class Source:
    """What is read slowly: each reading ends when `go` is set."""

    def __init__(self, answer: Callable[[], str], size_bytes: int) -> None:
        self.go = threading.Event()
        self.started = threading.Semaphore(0)
        self.readings = 0
        self._answer, self._size_bytes = answer, size_bytes

    def __call__(self) -> tuple[str, int]:
        self.readings += 1
        self.started.release()
        assert self.go.wait(30)
        return self._answer(), self._size_bytes


def test_one_thread_reads_for_all() -> None:
    cache: ReadThroughCache[str] = ReadThroughCache(100)
    source = Source(lambda: "value", 1)

    with ThreadPoolExecutor(READERS) as pool:
        answers = [pool.submit(cache.find_or_read, "key", source) for _ in range(READERS)]
        assert source.started.acquire(timeout=30)
        source.go.set()

    assert [answer.result() for answer in answers] == ["value"] * READERS
    assert source.readings == 1
    assert cache.find_or_read("key", source) == "value"
    assert source.readings == 1


def test_those_who_wait_for_a_value_too_large_to_keep_get_it() -> None:
    cache: ReadThroughCache[str] = ReadThroughCache(100)
    source = Source(lambda: "large", 101)
    late = Source(lambda: "read again", 101)
    late.go.set()

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.find_or_read, "key", source)
        assert source.started.acquire(timeout=30)
        second = pool.submit(cache.find_or_read, "key", late)
        assert not second.done()
        source.go.set()
        assert first.result() == "large"
        # The second came while the first was reading, or not until it had left: it may read for itself then.
        assert second.result() == ("read again" if late.readings else "large")

    assert cache.held_bytes == 0


def test_a_failure_is_everybodys_and_is_not_kept() -> None:
    def fail() -> str:
        raise FilesUnavailable("no answer")

    cache: ReadThroughCache[str] = ReadThroughCache(100)
    source = Source(fail, 1)

    with ThreadPoolExecutor(READERS) as pool:
        answers = [pool.submit(cache.find_or_read, "key", source) for _ in range(READERS)]
        assert source.started.acquire(timeout=30)
        source.go.set()

    for answer in answers:
        with pytest.raises(FilesUnavailable, match="no answer"):
            answer.result()
    assert cache.find_or_read("key", lambda: ("there now", 1)) == "there now"


def test_what_a_failed_read_held_is_let_go_at_once() -> None:
    """Health looks at damaged tables again and again: their files must not wait for a garbage collection."""

    class Content:
        pass

    held: list[weakref.ref[Content]] = []

    def read() -> tuple[str, int]:
        content = Content()
        held.append(weakref.ref(content))
        raise FilesUnavailable("broken off")

    cache = ReadThroughCache[str](1_000)
    gc.disable()
    try:
        with suppress(FilesUnavailable):
            cache.find_or_read("key", read)
        assert held[0]() is None
    finally:
        gc.enable()
