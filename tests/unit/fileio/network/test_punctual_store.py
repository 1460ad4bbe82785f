"""Calls to a store that end in time."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator

import pytest

from app.engine.model.ids import Location
from app.errors import FileMissing, FilesUnavailable
from app.fileio.files import ListedFile
from app.fileio.network.circuit import SILENT_CALLS
from app.fileio.network.object_store import ObjectStore, Place
from app.fileio.network.punctual_store import PunctualStore

HERE = Location("s3://bucket/file")


class Slow(ObjectStore):
    """A store that answers when a test lets it."""

    def __init__(self) -> None:
        super().__init__(lambda _location: Place(None, ""))
        self.awake = threading.Event()
        self.calls = 0

    def read(self, location: Location, expect: Callable[[int], None] = lambda _size: None) -> bytes:
        self.calls += 1
        if location.endswith("/large"):
            expect(1 << 30)
        if location.endswith("/missing"):
            raise FileMissing(location)
        if location.endswith("/refused"):
            raise FilesUnavailable("refused")
        self.awake.wait(60)
        return b"content"

    def list_files(self, prefix: Location) -> Iterator[ListedFile]:
        yield from (ListedFile(Location(f"{prefix}/{number}"), 1, 1) for number in range(25_000))
        self.awake.wait(60)


@pytest.fixture
def store() -> Iterator[Slow]:
    slow = Slow()
    yield slow
    slow.awake.set()


def test_an_answer_and_an_error_come_through(store: Slow) -> None:
    punctual = PunctualStore(store, answer_s=60)
    store.awake.set()

    assert punctual.read(HERE) == b"content"
    with pytest.raises(FileMissing):
        punctual.read(Location("s3://bucket/missing"))


def test_silence_ends_with_an_error_that_names_file_and_limit(store: Slow) -> None:
    with pytest.raises(FilesUnavailable, match=r"bucket/file: there was no whole answer after 0\.01 s"):
        PunctualStore(store, answer_s=0.01).read(HERE)


def test_a_large_file_has_more_time(store: Slow) -> None:
    punctual = PunctualStore(store, answer_s=0.01)
    threading.Timer(0.3, store.awake.set).start()

    assert punctual.read(Location("s3://bucket/large")) == b"content"


def test_after_repeated_silence_the_store_is_not_asked(store: Slow) -> None:
    punctual = PunctualStore(store, answer_s=0.01)
    for _ in range(SILENT_CALLS):
        with pytest.raises(FilesUnavailable):
            punctual.read(HERE)

    with pytest.raises(FilesUnavailable, match="has not answered 3 requests in a row"):
        punctual.read(HERE)

    assert store.calls == SILENT_CALLS


def test_prompt_errors_are_answers(store: Slow) -> None:
    punctual = PunctualStore(store, answer_s=60)

    for _ in range(2 * SILENT_CALLS):
        with pytest.raises(FilesUnavailable, match=r"^refused$"):
            punctual.read(Location("s3://bucket/refused"))

    assert store.calls == 2 * SILENT_CALLS


def test_threads_are_used_again(store: Slow) -> None:
    punctual = PunctualStore(store, answer_s=60)
    store.awake.set()
    before = threading.active_count()

    for _ in range(50):
        punctual.read(HERE)

    assert threading.active_count() <= before + 2


def test_where_no_thread_can_be_started_the_store_is_asked_again_later(
    store: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.fileio.network.circuit.FIRST_REST_S", 0.0)
    punctual = PunctualStore(store, answer_s=60)
    store.awake.set()

    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", start)
        for _ in range(SILENT_CALLS + 1):  # the last one is the probe of an open circuit
            with pytest.raises(FilesUnavailable, match="bucket/file: can't start new thread"):
                punctual.read(HERE)

    assert punctual.read(HERE) == b"content"


def test_a_listing_is_whole(store: Slow) -> None:
    store.awake.set()

    found = [file.location for file in PunctualStore(store).list_files(Location("s3://bucket/place"))]

    assert found == [f"s3://bucket/place/{number}" for number in range(25_000)]


def test_a_listing_without_end_is_given_up(store: Slow) -> None:
    listing = PunctualStore(store, listing_s=0.2).list_files(Location("s3://bucket/place"))

    with pytest.raises(
        FilesUnavailable, match=r"list s3://bucket/place: there was no whole answer after 0\.2 s"
    ):
        list(listing)


def test_threads_end_when_nobody_has_the_store_any_more(store: Slow) -> None:
    before = set(threading.enumerate())
    punctual = PunctualStore(store, answer_s=0.01)
    for _ in range(2):  # both are left behind
        with pytest.raises(FilesUnavailable):
            punctual.read(HERE)
    threads = set(threading.enumerate()) - before
    assert len(threads) == 2
    store.awake.set()
    assert punctual.read(HERE) == b"content"

    del punctual
    gc.collect()

    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
