"""Manifest lists that share lines: what is known of one is not made again for the next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.engine.model.files.manifests import ManifestContent, ManifestFile
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.errors import InvalidMetadata
from app.formats.avro.packers import Packing, write_packed
from app.formats.avro.types import write_long
from app.formats.manifests.lists import WrittenList, read_manifest_list, write_manifest_list
from tests.builders.manifest_records import field, text

PLACE = Location("memory://list.avro")
MANIFESTS = [
    ManifestFile(
        Location(f"s3://b/t/m-{at}.avro"),
        100,
        SpecId(0),
        sequence_number=1,
        min_sequence_number=1,
        added_snapshot_id=SnapshotId(1),
        added_files_count=1,
        existing_files_count=0,
        deleted_files_count=0,
        added_rows_count=1,
        existing_rows_count=0,
        deleted_rows_count=0,
    )
    for at in range(20)
]


def summary_of(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "r508", "fields": list(fields)}


def written(manifests: list[ManifestFile]) -> WrittenList:
    return write_manifest_list(
        manifests, format_version=2, snapshot_id=SnapshotId(1), parent_snapshot_id=None, sequence_number=1
    )


def test_what_a_list_has_at_its_end_as_the_one_before_is_taken_whole() -> None:
    known = written(MANIFESTS[2:]).lines

    found = read_manifest_list(written(MANIFESTS).content, PLACE, known=known)

    assert list(found.values) == MANIFESTS
    assert all(one is other for one, other in zip(found.values[2:], known.values, strict=True))
    # Nothing was looked for line by line.
    assert "by_start" not in known.__dict__


def test_line_of_a_manifest_is_packed_once_and_not_for_a_changed_one() -> None:
    first = written(MANIFESTS)
    lines = [manifest.packed for manifest in MANIFESTS]
    changed = replace(MANIFESTS[0], sequence_number=2)

    again = written([changed, *MANIFESTS[1:]])

    assert None not in lines
    assert all(manifest.packed is line for manifest, line in zip(MANIFESTS, lines, strict=True))
    assert changed.packed != MANIFESTS[0].packed
    assert list(read_manifest_list(again.content, PLACE).values) == [changed, *MANIFESTS[1:]]
    assert list(read_manifest_list(first.content, PLACE).values) == MANIFESTS


@pytest.mark.parametrize(
    ("kind", "packed", "reason"),
    [
        (field(504, "added_files_count", "string"), text("1"), "'1' for a number"),
        (field(507, "partitions", {"type": "array", "items": "long"}), b"\x02\x02\x00", "no attribute"),
        (
            field(
                507, "partitions", {"type": "array", "items": summary_of(field(510, "lower_bound", "string"))}
            ),
            b"\x02" + text("a") + b"\x00",
            "a bound of a summary is not binary",
        ),
    ],
)
def test_lines_of_another_kind_are_told(kind: dict[str, Any], packed: bytes, reason: str) -> None:
    fields = [
        field(500, "manifest_path", "string"),
        field(501, "manifest_length", "long"),
        field(502, "partition_spec_id", "int"),
        kind,
    ]
    schema = {"type": "record", "name": "manifest_file", "fields": fields}
    line = text("s3://b/m.avro") + write_long(100) + write_long(0) + packed

    with pytest.raises(InvalidMetadata, match=rf"^Cannot read manifest list {PLACE}: .*{reason}"):
        read_manifest_list(write_packed(Packing(schema), [line], {}), PLACE)


def test_schema_that_is_longer_than_any() -> None:
    """What is made of schemas is kept, with their texts: a few files would fill the memory."""
    schema = {"type": "record", "name": "manifest_file", "fields": [], "doc": "x" * (1 << 20)}

    with pytest.raises(InvalidMetadata, match=f"Cannot read manifest list {PLACE}: its schema is too long"):
        read_manifest_list(write_packed(Packing(schema), [], {}), PLACE)


def test_manifest_of_deletes_gives_no_row_ids() -> None:
    """DuckDB lists one with a first row id all the same; if it counted, every deletion vector would have row ids."""
    deletes = replace(MANIFESTS[0], content=ManifestContent.DELETES, first_row_id=58)
    data = replace(MANIFESTS[1], first_row_id=58)
    made = write_manifest_list(
        [deletes, data],
        format_version=3,
        snapshot_id=SnapshotId(1),
        parent_snapshot_id=None,
        sequence_number=1,
        first_row_id=58,
    )

    found = read_manifest_list(made.content, PLACE)

    assert [manifest.first_row_id for manifest in found.values] == [None, 58]
