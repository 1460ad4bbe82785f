"""What FileIO promises, on each implementation: memory, local disk, HDFS, stores of objects."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.engine.model.ids import Location
from app.errors import FileExists, FileMissing, InvalidLocation
from app.fileio.bounded_reads import BoundedReads, read_at_most
from app.fileio.files import FileIO
from app.fileio.local import LocalFiles
from app.fileio.memory import MemoryFiles
from app.fileio.schemes import files_for
from app.fileio.tails import Tail, TailReads, read_tail
from tests.builders.counting_files import CountingFiles
from tests.builders.failing_files import FailingFiles
from tests.servers.cloud_stores import KINDS, CloudStore
from tests.servers.s3 import S3Server
from tests.servers.webhdfs import HdfsPlace

_BUCKET = "contract"
_NAMES = [
    "plain",
    "two words",
    " blanks around ",
    "a%20b",
    "100%",
    "a+b",
    "a&b=c",
    "what?",
    "no#1",
    "quo'te",
    'quo"te',
    "co:lon",
    "se;mi,co",
    "[brackets]{braces}(round)",
    "~tilde$dollar*star|pipe",
    ".hidden",
    "a..b",
    "...",
    "ümläut",
    "日本語",
    "e\u0301 is not é",
    "🧊🗼",
    "x" * 200,
]


@dataclass(frozen=True)
class Store:
    """Files under test, an empty place in them, and how to reach the same place afresh."""

    files: FileIO
    root: Location
    reopen: Callable[[], FileIO]

    def at(self, *parts: str) -> Location:
        return Location("/".join([self.root, *parts]))


@pytest.fixture(
    params=["memory", "local", "counting", "hdfs", *KINDS, pytest.param("s3", marks=pytest.mark.s3)]
)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    match request.param:
        case "memory":
            memory = MemoryFiles()
            return Store(memory, Location("memory://m"), lambda: memory)
        case "local":
            return Store(LocalFiles(), Location(f"file:{tmp_path}"), LocalFiles)
        case "counting":  # of the tests: what it counts must be what a real store would do
            counting = CountingFiles(MemoryFiles())
            return Store(counting, Location("memory://m"), lambda: counting.files)
        case "hdfs":
            place: HdfsPlace = request.getfixturevalue("hdfs")
            again = {**place.storage, "hdfs.request-timeout": "9"}
            return Store(files_for(place.storage), Location(place.new_root()), lambda: files_for(again))
        case "azure" | "google" as kind:
            cloud: CloudStore = request.getfixturevalue(kind)
            same = cloud.same_storage()
            return Store(files_for(cloud.storage), Location(cloud.new_root()), lambda: files_for(same))
        case _:
            server: S3Server = request.getfixturevalue("s3_server")
            server.create_bucket(_BUCKET)
            root = Location(f"s3://{_BUCKET}/{uuid.uuid4()}")
            # Other settings that mean the same: files that share nothing with those under test.
            other = {**server.storage, "s3.request-timeout": "9"}
            return Store(files_for(server.storage), root, lambda: files_for(other))


@pytest.mark.parametrize(
    "content",
    [b"", b"x", bytes(range(256)), b"\r\n\x00\xff", b"ice" * 2_000, bytes(5_000_000), b"tower" * 2_500_000],
    ids=["empty", "one byte", "every byte", "no text", "6 KB", "5 MB", "12 MB"],
)
def test_what_is_written_is_read(store: Store, content: bytes) -> None:
    location = store.at("t", "metadata", "00000-x.metadata.json")

    store.files.write_new(location, content)

    assert store.files.read(location) == content
    assert store.files.exists(location)


@pytest.mark.parametrize("size", [0, 1, 100, 5_000_000])
def test_a_file_is_read_if_it_is_no_larger_than_allowed(store: Store, size: int) -> None:
    location = store.at("t", "x")
    store.files.write_new(location, bytes(size))

    assert isinstance(store.files, BoundedReads)
    assert read_at_most(store.files, location, size) == bytes(size)
    assert read_at_most(store.files, location, size + 1) == bytes(size)
    assert read_at_most(store.files, location, size - 1) is None


def test_a_missing_file_is_missing_however_much_is_allowed(store: Store) -> None:
    for allowed in (0, 100):
        with pytest.raises(FileMissing, match="nothing"):
            read_at_most(store.files, store.at("nothing"), allowed)


def test_a_store_that_cannot_look_first_reads_all_of_a_file_and_keeps_what_is_too_large_to_itself(
    store: Store,
) -> None:
    location = store.at("t", "x")
    store.files.write_new(location, b"1234")
    plain = FailingFiles(store.files)

    assert not isinstance(plain, BoundedReads)
    assert read_at_most(plain, location, 4) == b"1234"
    assert read_at_most(plain, location, 3) is None


@pytest.mark.parametrize("size", [0, 1, 100, 5_000_000])
def test_the_end_of_a_file_is_read_with_its_size(store: Store, size: int) -> None:
    location = store.at("t", "x")
    content = bytes(number % 251 for number in range(size))
    store.files.write_new(location, content)

    assert isinstance(store.files, TailReads)
    for most in (0, 1, 64, size, size + 1):
        assert read_tail(store.files, location, most) == Tail(size, content[max(0, size - most) :])


def test_a_missing_file_has_no_end(store: Store) -> None:
    for most in (0, 100):
        with pytest.raises(FileMissing, match="nothing"):
            read_tail(store.files, store.at("nothing"), most)


def test_a_store_that_cannot_read_the_end_alone_reads_the_file(store: Store) -> None:
    location = store.at("t", "x")
    store.files.write_new(location, b"1234")
    plain = FailingFiles(store.files)

    assert not isinstance(plain, TailReads)
    assert read_tail(plain, location, 3) == Tail(4, b"234")
    assert read_tail(plain, location, 0) == Tail(4, b"")


def test_what_is_written_is_seen_from_elsewhere_at_once(store: Store) -> None:
    location = store.at("t", "x")

    store.files.write_new(location, b"content")

    assert store.reopen().read(location) == b"content"


def test_a_name_that_ends_in_gz_is_not_compressed_again(store: Store) -> None:
    location = store.at("00000-x.gz.metadata.json.gz")

    store.files.write_new(location, b"as it is")

    assert store.files.read(location) == b"as it is"
    assert [file.size_bytes for file in store.files.list_files(store.root)] == [8]


def test_writing_over_a_file_is_refused_and_leaves_it(store: Store) -> None:
    location = store.at("t", "x")
    store.files.write_new(location, b"first")

    with pytest.raises(FileExists, match=location):
        store.files.write_new(location, b"second")

    assert store.files.read(location) == b"first"


def test_a_name_is_free_again_after_deletion(store: Store) -> None:
    location = store.at("t", "x")
    store.files.write_new(location, b"first")
    store.files.delete(location)

    store.files.write_new(location, b"second")

    assert store.files.read(location) == b"second"


@pytest.mark.parametrize("store", ["memory", "local", "hdfs"], indirect=True)
def test_of_many_writers_of_one_location_one_wins(store: Store) -> None:
    rounds, writers = 20, 8

    with ThreadPoolExecutor(writers) as pool:
        for number in range(rounds):
            location = store.at("deep", str(number), "in", "new", "directories", "x")
            contents = [f"{number}/{writer}".encode() * 1_000 for writer in range(writers)]

            won = list(
                pool.map(lambda content, location=location: _wins(store.files, location, content), contents)
            )

            assert won.count(True) == 1
            assert store.files.read(location) == contents[won.index(True)]


def _wins(files: FileIO, location: Location, content: bytes) -> bool:
    try:
        files.write_new(location, content)
    except FileExists:
        return False
    return True


def test_many_writers_of_many_locations_all_succeed(store: Store) -> None:
    contents = {
        store.at("t", f"d{number % 3}", f"{uuid.uuid4()}"): str(number).encode() for number in range(60)
    }

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(store.files.write_new, contents.keys(), contents.values()))
        read = dict(zip(contents, pool.map(store.files.read, contents), strict=True))

    assert read == contents
    assert {file.location for file in store.files.list_files(store.root)} == set(contents)


def test_a_missing_file_is_named(store: Store) -> None:
    location = store.at("no", "such", "file")

    with pytest.raises(FileMissing, match=location) as raised:
        store.files.read(location)

    assert raised.value.location == location
    assert not store.files.exists(location)


def test_a_directory_is_no_file(store: Store) -> None:
    store.files.write_new(store.at("t", "metadata", "x"), b"")

    with pytest.raises(FileMissing):
        store.files.read(store.at("t", "metadata"))
    assert not store.files.exists(store.at("t", "metadata"))
    assert not store.files.exists(store.at("t"))


def test_what_lies_below_a_file_is_missing(store: Store) -> None:
    store.files.write_new(store.at("t"), b"")

    with pytest.raises(FileMissing):
        store.files.read(store.at("t", "x"))
    assert not store.files.exists(store.at("t", "x"))
    store.files.delete(store.at("t", "x"))
    assert list(store.files.list_files(store.at("t"))) == []


def test_deleting_takes_one_file_and_may_be_repeated(store: Store) -> None:
    for name in ("x", "x2", "y"):
        store.files.write_new(store.at("t", name), b"")

    store.files.delete(store.at("t", "x"))
    store.files.delete(store.at("t", "x"))
    store.files.delete(store.at("t", "never was"))
    store.files.delete(store.at("nowhere", "at", "all"))

    assert not store.files.exists(store.at("t", "x"))
    assert {file.location for file in store.files.list_files(store.root)} == {
        store.at("t", "x2"),
        store.at("t", "y"),
    }


def test_deleting_the_last_file_leaves_nothing_that_is_listed(store: Store) -> None:
    store.files.write_new(store.at("t", "metadata", "x"), b"")

    store.files.delete(store.at("t", "metadata", "x"))

    assert list(store.files.list_files(store.root)) == []


def test_deleting_a_directory_deletes_no_file(store: Store) -> None:
    store.files.write_new(store.at("t", "metadata", "x"), b"")

    store.files.delete(store.at("t", "metadata"))
    store.files.delete(store.at("t"))

    assert store.files.exists(store.at("t", "metadata", "x"))


def test_listing_goes_by_whole_segments_and_to_any_depth(store: Store) -> None:
    inside = [
        store.at("t", "x"),
        store.at("t", "data", "p=1", "f.parquet"),
        store.at("t", "data", "g.parquet"),
    ]
    for location in [*inside, store.at("t2", "x"), store.at("t.bak"), store.at("u", "t", "x")]:
        store.files.write_new(location, b"")

    assert sorted(file.location for file in store.files.list_files(store.at("t"))) == sorted(inside)
    assert sorted(file.location for file in store.files.list_files(store.at("t", ""))) == sorted(inside)
    assert [file.location for file in store.files.list_files(store.at("t", "data", "p=1"))] == [inside[1]]


def test_listing_tells_size_and_time(store: Store) -> None:
    before_ms = time.time_ns() // 1_000_000
    store.files.write_new(store.at("t", "x"), b"12345")
    after_ms = time.time_ns() // 1_000_000

    (file,) = store.files.list_files(store.root)

    assert file.size_bytes == 5
    assert before_ms - 1_500 <= file.modified_ms <= after_ms + 1_500  # object stores tell whole seconds


def test_a_file_is_found_as_a_listing_has_it(store: Store) -> None:
    location = store.at("t", "x y%20z")
    store.files.write_new(location, b"12345")

    (listed,) = store.files.list_files(store.root)

    assert store.files.find_file(location) == listed
    assert store.files.find_file(store.at("t")) is None
    assert store.files.find_file(store.at("t", "nowhere")) is None
    store.files.delete(location)
    assert store.files.find_file(location) is None


def test_listing_a_deep_tree_finds_each_file_once(store: Store) -> None:
    expected = [
        store.at(*(f"d{number}" for number in range(depth)), f"f-{uuid.UUID(int=depth)}")
        for depth in range(1, 7)
    ]
    expected += [store.at("wide", f"p={number}", f"g-{uuid.UUID(int=number)}") for number in range(300)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda location: store.files.write_new(location, b""), expected))

    assert sorted(file.location for file in store.files.list_files(store.root)) == sorted(expected)


def test_listing_where_nothing_is_yields_nothing(store: Store) -> None:
    assert list(store.files.list_files(store.at("nowhere"))) == []
    assert list(store.files.list_files(store.at("nowhere", "at", "all", ""))) == []


def test_a_file_is_not_below_itself(store: Store) -> None:
    store.files.write_new(store.at("t", "x"), b"")

    assert list(store.files.list_files(store.at("t", "x"))) == []


def test_listing_many_files_finds_all(store: Store) -> None:
    expected = {store.at("t", f"{number:05}-{uuid.UUID(int=number)}") for number in range(1_100)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda location: store.files.write_new(location, b""), expected))

    assert {file.location for file in store.files.list_files(store.root)} == expected


@pytest.mark.parametrize("name", _NAMES)
def test_names_are_literal(store: Store, name: str) -> None:
    location = Location(f"{store.root}/{name}/{name}")
    if name in {"co:lon", "e\u0301 is not é"} and store.root.startswith("hdfs:"):
        with pytest.raises(InvalidLocation, match="Not a path"):
            store.files.write_new(location, b"")
        return

    store.files.write_new(location, name.encode())

    assert store.files.read(location) == name.encode()
    assert store.files.exists(location)
    assert [file.location for file in store.files.list_files(store.root)] == [location]
    assert [file.location for file in store.files.list_files(Location(f"{store.root}/{name}"))] == [location]
    store.files.delete(location)
    assert not store.files.exists(location)


@pytest.mark.parametrize("store", ["memory", "local"], indirect=True)
def test_a_backslash_is_literal(store: Store) -> None:
    """On disk and in memory, that is: SeaweedFS takes it for a slash."""
    location = store.at("back\\slash")

    store.files.write_new(location, b"")

    assert [file.location for file in store.files.list_files(store.root)] == [location]


@pytest.mark.parametrize(
    ("one", "other"),
    [("a%20b", "a b"), ("a+b", "a b"), ("%C3%BC", "ü"), ("e\u0301", "é"), ("A", "a"), ("a%2Fb", "a")],
)
def test_names_that_only_look_alike_are_two_files(store: Store, one: str, other: str) -> None:
    if one == "e\u0301" and store.root.startswith("hdfs:"):
        with pytest.raises(InvalidLocation, match="decomposed"):
            store.files.write_new(store.at(one), b"one")
        return
    store.files.write_new(store.at(one), b"one")
    store.files.write_new(store.at(other), b"other")

    assert store.files.read(store.at(one)) == b"one"
    assert store.files.read(store.at(other)) == b"other"


@pytest.mark.parametrize(
    ("store", "spellings"),
    [
        ("local", ["file:", "file://", "", "FILE:", "file:///"]),
        pytest.param("s3", ["s3:", "s3a:", "s3n:", "S3:"], marks=pytest.mark.s3),
    ],
    indirect=["store"],
)
def test_spellings_of_one_place_are_one_file_and_listed_as_asked(store: Store, spellings: list[str]) -> None:
    rest = store.root.partition(":")[2]
    files = store.reopen() if rest.startswith("//") else files_for({})
    for number, spelling in enumerate(spellings):
        root = spelling + rest
        location = Location(f"{root}/{number}")

        files.write_new(location, b"x")

        for other in spellings:
            assert files.exists(Location(f"{other}{rest}/{number}"))
        assert location in {file.location for file in files.list_files(Location(root))}
