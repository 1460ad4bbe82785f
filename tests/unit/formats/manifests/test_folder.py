"""The folder of manifests on the local disk: what it keeps, and that nothing wrong ever comes out of it."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.engine.model.ids import Location
from app.errors import FileMissing
from app.formats.manifests.folder import ManifestFolder

PLACE = Location("s3://bucket/table/metadata/m.avro")
CONTENT = b"Obj\x01" + bytes(range(256)) * 4
STORAGE = {"s3.endpoint": "http://one"}
LARGE = 1 << 20


class Store:
    """Files that count how often they are read."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.readings = 0

    def read(self, location: Location) -> bytes:
        self.readings += 1
        if location not in self.files:
            raise FileMissing(location)
        return self.files[location]


def reader(path: Path, store: Store, max_bytes: int = LARGE) -> Callable[[Location], bytes]:
    return ManifestFolder(path, max_bytes).reader(STORAGE, 0, store.read)


def copies(path: Path) -> list[Path]:
    return sorted(found for found in path.rglob("*") if found.is_file())


def test_a_file_is_asked_for_once_by_all_processes_of_a_machine(tmp_path: Path) -> None:
    store = Store({PLACE: CONTENT})

    assert [reader(tmp_path, store)(PLACE) for _ in range(3)] == [CONTENT] * 3

    assert store.readings == 1


def test_what_is_missing_is_not_kept(tmp_path: Path) -> None:
    store = Store({})
    read = reader(tmp_path, store)

    with pytest.raises(FileMissing):
        read(PLACE)
    store.files[PLACE] = CONTENT

    assert read(PLACE) == CONTENT


def test_stores_with_other_settings_are_other_stores(tmp_path: Path) -> None:
    one, two = Store({PLACE: CONTENT}), Store({PLACE: b"another"})
    folder = ManifestFolder(tmp_path, LARGE)

    assert folder.reader(STORAGE, 0, one.read)(PLACE) == CONTENT
    assert folder.reader({"s3.endpoint": "http://two"}, 0, two.read)(PLACE) == b"another"
    assert folder.reader(STORAGE, 1, two.read)(PLACE) == b"another"
    assert folder.reader(dict(reversed(STORAGE.items())), 0, two.read)(PLACE) == CONTENT


@pytest.mark.parametrize("location", ["/warehouse/m.avro", "file:///warehouse/m.avro", "memory://m.avro"])
def test_files_at_hand_are_not_copied(tmp_path: Path, location: str) -> None:
    store = Store({location: CONTENT})
    read = reader(tmp_path, store)

    assert [read(Location(location)), read(Location(location))] == [CONTENT, CONTENT]
    assert (store.readings, copies(tmp_path)) == (2, [])


def damaged(content: bytes) -> dict[str, bytes]:
    return {
        "empty": b"",
        "cut in its header": content[:30],
        "cut in its content": content[:-1],
        "longer": content + b"x",
        "a bit turned": content[:200] + bytes([content[200] ^ 1]) + content[201:],
        "of another version": b"icetower manifest 2\n" + content[20:],
        "something else": b"x" * len(content),
    }


@pytest.mark.parametrize("how", list(damaged(bytes(300))))
def test_a_damaged_copy_is_read_anew(tmp_path: Path, how: str) -> None:
    store = Store({PLACE: CONTENT})
    reader(tmp_path, store)(PLACE)
    (copy,) = copies(tmp_path)
    copy.write_bytes(damaged(copy.read_bytes())[how])

    assert reader(tmp_path, store)(PLACE) == CONTENT
    assert store.readings == 2
    assert reader(tmp_path, store)(PLACE) == CONTENT
    assert store.readings == 2


def test_a_copy_of_another_file_is_not_taken(tmp_path: Path) -> None:
    """Whoever renames copies, or a broken file system, cannot make one manifest another."""
    other = Location(f"{PLACE}-2")
    store = Store({PLACE: CONTENT, other: b"other"})
    read = reader(tmp_path, store)
    read(PLACE)
    (first,) = copies(tmp_path)
    read(other)
    (second,) = set(copies(tmp_path)) - {first}
    second.write_bytes(first.read_bytes())

    assert read(other) == b"other"


def test_what_was_used_longest_ago_goes_when_there_is_no_room(tmp_path: Path) -> None:
    places = [Location(f"{PLACE}-{at}") for at in range(100)]
    store = Store({place: os.urandom(1000) for place in places})
    read = reader(tmp_path, store, max_bytes=20_000)
    read(places[0])
    (oldest,) = copies(tmp_path)

    for at, place in enumerate(places):
        read(place)
        for copy in copies(tmp_path):
            if copy != oldest and copy.stat().st_mtime > 10_000:
                os.utime(copy, (at, at))  # a clock that shows the order, whatever the file system's does

    assert sum(copy.stat().st_size for copy in copies(tmp_path)) <= 21_100
    before = store.readings
    read(places[0])
    read(places[-1])
    assert store.readings == before
    read(places[1])
    assert store.readings == before + 1


def test_what_is_too_large_is_not_kept(tmp_path: Path) -> None:
    store = Store({PLACE: CONTENT})

    assert reader(tmp_path, store, max_bytes=4 * len(CONTENT) - 1)(PLACE) == CONTENT
    assert copies(tmp_path) == []


def test_pieces_of_processes_that_died_are_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "ab").mkdir()
    old, new = tmp_path / "ab" / "1.part", tmp_path / "ab" / "2.part"
    for piece in (old, new):
        piece.write_bytes(b"half")
    os.utime(old, (1, 1))

    reader(tmp_path, Store({PLACE: CONTENT}))(PLACE)

    assert (old.exists(), new.exists()) == (False, True)


def test_a_folder_that_cannot_be_used_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_bytes(b"")
    read = reader(in_the_way, Store({PLACE: CONTENT}))

    assert [read(PLACE), read(PLACE)] == [CONTENT, CONTENT]
    assert len(caplog.records) == 1
    assert "cannot be used" in caplog.text


def _read_many(path: Path, places: list[Location], start: threading.Barrier) -> None:
    store = Store({place: place.encode() * 50 for place in places})
    read = reader(path, store, max_bytes=40_000)
    start.wait(30)
    for _ in range(5):
        for place in places:
            assert read(place) == store.files[place]


def test_several_processes_and_threads_at_once(tmp_path: Path) -> None:
    places = [Location(f"{PLACE}-{at}") for at in range(40)]
    processes = multiprocessing.get_context("spawn")
    start = processes.Barrier(3)
    running = [processes.Process(target=_read_many, args=(tmp_path, places, start)) for _ in range(3)]
    for process in running:
        process.start()
    for process in running:
        process.join(60)
    assert [process.exitcode for process in running] == [0, 0, 0]

    store = Store({place: place.encode() * 50 for place in places})
    read = reader(tmp_path, store, max_bytes=40_000)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(read, places * 3)) == [store.files[place] for place in places] * 3
    assert [copy.suffix for copy in copies(tmp_path)] == [".manifest"] * len(copies(tmp_path))
