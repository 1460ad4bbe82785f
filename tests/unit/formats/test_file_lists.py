from __future__ import annotations

import tracemalloc
from contextlib import suppress

import pyarrow as pa
import pytest

from app.engine.model.ids import Location
from app.errors import GivenUp, InvalidRequest
from app.fileio.memory import MemoryFiles
from app.fileio.wanted import ask_if_wanted
from app.formats.file_lists import read_file_list
from tests.builders.hostile_footers import bare_column, file_of, footer_of, leaf, nest, row_group
from tests.builders.parquet_files import parquet

MOST = 256 << 20


def listed(name: str, content: bytes) -> list[tuple[str, int]]:
    files = MemoryFiles()
    location = Location(f"memory://lists/{name}")
    files.write_new(location, content)
    return [(file.location, file.modified_ms) for file in read_file_list(files, location, MOST)]


def repeated(path: str, rows: int) -> bytes:
    """Return a list that names one path many times, and takes a few bytes for each."""
    paths = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([path]))
    return parquet(pa.table({"file_path": paths, "last_modified": pa.array([7] * rows)}), compression="zstd")


def test_path_that_is_named_many_times_is_read() -> None:
    assert listed("l.parquet", repeated("s3://b/x", 2_500)) == [("s3://b/x", 7)] * 2_500


def test_small_file_of_many_long_paths_is_refused() -> None:
    content = repeated("s3://b/" + "x" * 100_000, 1_000_000)

    assert len(content) < 100_000
    with pytest.raises(InvalidRequest, match="a path has 100007 bytes"):
        listed("l.parquet", content)


def test_small_file_of_many_long_times_is_refused() -> None:
    # Of a time that is written once, each row would have a copy.
    times = pa.array(["2026-01-01" + " " * 100_000] * 2_000)
    content = parquet(
        pa.table({"file_path": ["s3://b/x"] * 2_000, "last_modified": times}), compression="zstd"
    )

    assert len(content) < 10_000
    with pytest.raises(InvalidRequest, match="a time has 100010 bytes"):
        listed("l.parquet", content)


def test_times_that_are_texts_are_read() -> None:
    times = pa.array(["2026-01-01T00:00:00Z", "2026-01-01T00:00:01"] * 2)
    content = parquet(pa.table({"file_path": ["s3://b/x"] * 4, "last_modified": times}))

    assert [at for _, at in listed("l.parquet", content)] == [1_767_225_600_000, 1_767_225_601_000] * 2


def test_small_file_that_claims_many_columns_is_refused() -> None:
    groups = [row_group([bare_column()] * 200_000)]
    content = file_of(footer_of([nest("root", 1), leaf("file_path")], groups))

    with pytest.raises(InvalidRequest, match="too many columns and row groups"):
        listed("l.parquet", content)


def test_lines_are_not_all_held_at_once() -> None:
    content = b'["a"]\n' * 500_000
    tracemalloc.start()
    try:
        with pytest.raises(InvalidRequest, match="file_path and last_modified cannot be read"):
            listed("l.json", content)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < 2 * len(content)


@pytest.mark.parametrize("name", ["l.json", "l.csv", "l.parquet"])
def test_reading_ends_when_the_client_has_gone(name: str) -> None:
    contents = {
        "l.json": b'{"file_path": "s3://b/x", "last_modified": 7}\n',
        "l.csv": b"file_path,last_modified\ns3://b/x,7\n",
        "l.parquet": repeated("s3://b/x", 1),
    }

    def gone() -> None:
        raise GivenUp("it has gone")

    assert listed(name, contents[name]) == [("s3://b/x", 7)]
    token = ask_if_wanted.set(gone)
    try:
        with pytest.raises(GivenUp):
            listed(name, contents[name])
    finally:
        ask_if_wanted.reset(token)


def pages(encoding: str | None = None, **more: object) -> bytes:
    paths = [f"s3://b/{number}" for number in range(10)]
    table = pa.table({"file_path": paths, "last_modified": pa.array([7] * 10)})
    chosen = {} if encoding is None else {"use_dictionary": False, "column_encoding": {"file_path": encoding}}
    return parquet(table, **chosen, **more)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("encoding", [None, "PLAIN"])
def test_pages_of_every_kind_are_read(version: str, compression: str, encoding: str | None) -> None:
    content = pages(encoding, compression=compression, data_page_version=version)

    assert len(listed("l.parquet", content)) == 10


def test_page_that_unpacks_to_too_much_is_refused() -> None:
    paths = pa.array(["s3://b/" + "x" * 30_000] * 2_000)
    table = pa.table({"file_path": paths, "last_modified": pa.array([7] * 2_000)})
    content = parquet(
        table, compression="zstd", use_dictionary=False, data_page_size=1 << 30, write_batch_size=10_000
    )

    assert len(content) < 100_000
    with pytest.raises(InvalidRequest, match=r"a page unpacks to 6\d+ bytes"):
        listed("l.parquet", content)


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_encoding_that_cannot_be_read_within_bounds_is_refused(encoding: str) -> None:
    with pytest.raises(InvalidRequest, match="cannot be read"):
        listed("l.parquet", pages(encoding))


def test_every_broken_byte_of_a_list_is_answered_as_bad_input() -> None:
    content = pages(compression="none")
    for place in range(4, len(content) - 8):
        for byte in (0, 0x7F, 0xFF):
            broken = content[:place] + bytes([byte]) + content[place + 1 :]
            with suppress(InvalidRequest):
                listed("l.parquet", broken)
