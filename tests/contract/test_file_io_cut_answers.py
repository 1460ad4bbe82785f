"""Answers of S3 that end in their head: no file is taken for another one, for an empty one or for none."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from app.engine.model.ids import Location
from app.errors import FilesUnavailable
from app.fileio.files import FileIO
from app.fileio.schemes import files_for
from app.fileio.tails import read_tail
from tests.servers.cut_wire import CutWire, cut_wire
from tests.servers.s3 import S3Server

pytestmark = pytest.mark.s3

_BUCKET = "cut-answers"
_HEAD_AND_CONTENT = 2
_MORE_THAN_TRIED = 10


@pytest.fixture
def wire(s3_server: S3Server) -> Iterator[CutWire]:
    s3_server.create_bucket(_BUCKET)
    with cut_wire(s3_server.port) as laid:
        yield laid


@pytest.fixture
def files(s3_server: S3Server, wire: CutWire) -> FileIO:
    return files_for({**s3_server.storage, "s3.endpoint": wire.endpoint})


@pytest.fixture
def root() -> Location:
    return Location(f"s3://{_BUCKET}/{uuid.uuid4()}")


def cut_after(wire: CutWire, sound: int, files: FileIO, location: Location) -> None:
    """Cut one answer, the first or the second from now on."""
    assert files.exists(location)
    wire.sound_before, wire.answers_to_cut = sound, 1


def written(files: FileIO, root: Location, content: bytes) -> Location:
    location = Location(f"{root}/{uuid.uuid4()}")
    files.write_new(location, content)
    return location


@pytest.mark.parametrize("last", [b"}", b"\x00", b"\xff"])
@pytest.mark.parametrize("sound", range(_HEAD_AND_CONTENT))
def test_a_file_is_read_again_and_never_taken_for_another_one(
    files: FileIO, wire: CutWire, root: Location, sound: int, last: bytes
) -> None:
    """Memory that was freed a moment ago has the other file."""
    other, wanted = (written(files, root, letter * 20_000 + last) for letter in (b"1", b"2"))
    for _ in range(5):
        assert files.read(other) == b"1" * 20_000 + last
        cut_after(wire, sound, files, wanted)
        assert files.read(wanted) == b"2" * 20_000 + last
        cut_after(wire, sound, files, wanted)
        assert read_tail(files, wanted, 10_000).content == b"2" * 9_999 + last


def test_a_file_whose_answers_all_end_early_is_not_read(files: FileIO, wire: CutWire, root: Location) -> None:
    location = written(files, root, b"x" * 100)
    wire.sound_before, wire.answers_to_cut = 1, _MORE_THAN_TRIED

    with pytest.raises(FilesUnavailable, match="ended early"):
        files.read(location)


def test_empty_files_are_empty(files: FileIO, root: Location) -> None:
    location = written(files, root, b"")

    assert files.read(location) == b""
    assert read_tail(files, location, 10).content == b""


def test_sizes_times_and_listings_are_asked_for_again(files: FileIO, wire: CutWire, root: Location) -> None:
    location = written(files, root, b"12345")
    sound = files.find_file(location)
    assert sound is not None
    assert sound.size_bytes == 5

    wire.answers_to_cut = 1
    assert files.find_file(location) == sound
    wire.answers_to_cut = 1
    assert [file.location for file in files.list_files(root)] == [location]
