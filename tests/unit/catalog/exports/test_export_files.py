from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest

from app.catalog.exports.export_files import MOST_BYTES, read_export
from app.engine.model.ids import Location
from app.errors import InvalidRequest
from app.fileio.local import LocalFiles
from app.fileio.memory import MemoryFiles

BEGIN = b'{"icetower-pointers": 1, "at-ms": 1, "sequence": 1}\n'
DROP = (
    b'{"dropped":{"kind":"table","in":["a"],"created-ms":1,"dropped-ms":2,"until-ms":3,"by":"anna","request-id":"r",'
    b'"name":"t","uuid":"u","metadata-location":"memory://t"}}\n'
)
END = b'{"namespaces":0,"pointers":0}\n'
PLACE = Location("memory://exports/e.ndjson.gz")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"[" * 100_000, "RecursionError"),
        (b"", "StopIteration"),
        (b"[]\n", "AttributeError"),
        (b"{}\n", "no export of pointers that this build can read"),
        (b'{"icetower-pointers": 1, "at-ms": 1}\n', "KeyError"),
        (b'{"icetower-pointers": 1, "at-ms": 1, "sequence": "1"}\n', "TypeError"),
        (b'{"icetower-pointers": 1, "at-ms": 1, "sequence": 1}\n\xff\n', "UnicodeDecodeError"),
        (BEGIN + b'{"dropped": {"kind": "table", "in": []}}\n', "KeyError"),
        (BEGIN + DROP.replace(b'"kind":"table"', b'"kind":"namespace"'), "makes no sense"),
        (BEGIN + DROP.replace(b'"until-ms":3', b'"until-ms":"3"'), "makes no sense"),
        (BEGIN + b'{"settings": {"default-properties": {"a": 1}}}\n', "properties must be texts"),
        (BEGIN + b'{"warehouse": {"name": "w", "root-location": "r"}}\n', "KeyError"),
        *(
            (b'{"icetower-pointers": 1, "at-ms": 1, "sequence": 1}\n' + line, reason)
            for line, reason in (
                (b'{"namespace": [], "properties": {}}\n', "it has no levels"),
                (b'{"namespace": ["a", ".."], "properties": {}}\n', "no path can hold it"),
                (b'{"namespace": ["a"], "properties": {"owner": 5}}\n', "properties must be texts"),
                (b'{"namespace": ["a"], "properties": {}}\n' * 2, "a is there twice"),
                (
                    b'{"table": "a\\u0000", "in": ["a"], "uuid": "u", "metadata-location": "m"}\n',
                    "it contains",
                ),
                (
                    b'{"table": "t", "in": ["a"], "uuid": "u", "metadata-location": "m"}\n' * 2,
                    "a.t is there twice",
                ),
            )
        ),
    ],
)
def test_what_is_no_export_is_refused_in_words(content: bytes, reason: str) -> None:
    files = MemoryFiles()
    files.write_new(PLACE, gzip.compress(content))

    with pytest.raises(InvalidRequest, match=reason):
        read_export(files, PLACE)


def test_lines_of_later_builds_are_passed_over_and_those_of_earlier_ones_suffice() -> None:
    files = MemoryFiles()
    files.write_new(
        PLACE, gzip.compress(BEGIN + b'{"new": {"in": [], "uuid": "", "metadata-location": ""}}\n' + END)
    )
    drop_of_earlier_build = DROP.replace(b'"by":', b'"purge":true,"by":')
    files.write_new(Location(f"{PLACE}2"), gzip.compress(BEGIN + drop_of_earlier_build + END))

    old, new = read_export(files, PLACE), read_export(files, Location(f"{PLACE}2"))

    assert (old.dropped, old.settings) == ([], None)
    assert [(drop.name, drop.uuid, drop.until_ms) for drop in new.dropped] == [("t", "u", 3)]
    assert new.warehouses == []


def test_small_export_that_unpacks_to_one_endless_line_is_refused() -> None:
    files = MemoryFiles()
    content = gzip.compress(bytes(100 << 20))
    files.write_new(PLACE, content)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidRequest, match="unpacks to more than an export can have"):
            read_export(files, PLACE)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(content) < 1 << 20
    assert peak_bytes < 60 << 20


def test_huge_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "e.ndjson.gz").open("wb") as sparse:
        sparse.truncate(MOST_BYTES + 1)

    with pytest.raises(InvalidRequest, match="it has more than 268435456 bytes"):
        read_export(LocalFiles(), Location(f"file://{tmp_path}/e.ndjson.gz"))
