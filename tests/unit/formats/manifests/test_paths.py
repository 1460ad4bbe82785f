"""What our own decoder is compared with before files are deleted: fastavro's records, however odd their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from app.engine.model.files.manifests import DataFile, EntryStatus, FileContent, ManifestEntry
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.errors import InvalidMetadata
from app.formats.avro.packers import Packing, write_packed
from app.formats.avro.types import write_long
from app.formats.manifests.paths import statuses_and_paths
from app.formats.manifests.writer import WrittenManifest, write_manifest
from tests.builders.manifest_records import FIXED, field, record, schema_with
from tests.strategies.manifest_entries import table_of

MANIFEST = Location("memory://m.avro")
PATHS = [Location("s3://b/é"), Location("s3://b/2")]


def written(kinds: Sequence[str] = (), partition: tuple[object, ...] = ()) -> WrittenManifest:
    schema, spec = table_of(list(kinds), ["identity"] * len(kinds))
    entries = [
        ManifestEntry(
            status, SnapshotId(1), 1, 1, DataFile(FileContent.DATA, path, "orc", SpecId(3), partition, 1, 1)
        )
        for status, path in zip((EntryStatus.EXISTING, EntryStatus.DELETED), PATHS, strict=True)
    ]
    return write_manifest(entries, schema=schema, spec=spec, format_version=2, snapshot_id=SnapshotId(1))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("date", 2**31 - 1),
        ("date", -(2**31)),
        ("timestamp", 2**63 - 1),
        ("time", 2**62),
        ("uuid", None),
        ("fixed[5]", b"\x0a1234"),
        ("string", "\x00é"),
    ],
)
def test_values_of_partitions_do_not_matter(kind: str, value: object) -> None:
    content = written([kind], (value,)).content

    assert statuses_and_paths(content, MANIFEST) == [(0, PATHS[0]), (2, PATHS[1])]


def test_fixed_values_as_the_reference_has_them() -> None:
    content = write_packed(
        Packing(schema_with([FIXED])), [record(b"\x02" + b"\x0a" + b"01234", path=PATHS[1])] * 2, {}
    )

    assert statuses_and_paths(content, MANIFEST) == [(1, PATHS[1])] * 2


def test_every_cut_is_told_but_one_before_the_first_block() -> None:
    """Which nobody can tell from a manifest without entries, unless a manifest list says how long it is."""
    content = written(["string"], ("x",)).content
    found = {}

    for end in range(len(content)):
        try:
            found[end] = statuses_and_paths(content[:end], MANIFEST)
        except InvalidMetadata as error:
            assert f"Cannot read {MANIFEST} as Avro" in str(error)  # noqa: PT017 - at one place it may not be raised

    assert list(found.values()) == [[]]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"Obj\x01\x00" + bytes(16)])
def test_what_is_no_manifest(content: bytes) -> None:
    with pytest.raises(InvalidMetadata, match=f"Cannot read {MANIFEST} as Avro"):
        statuses_and_paths(content, MANIFEST)


def test_records_of_another_kind() -> None:
    schema = {"type": "record", "name": "user", "fields": [{"name": "data_file", "type": "string"}]}
    content = write_packed(Packing(schema), [b"\x06Ada"], {})

    with pytest.raises(InvalidMetadata, match=f"Cannot read {MANIFEST} as Avro"):
        statuses_and_paths(content, MANIFEST)


@pytest.mark.parametrize(
    "other", [[], [field(900, "other", ["null", {"type": "fixed", "name": "n", "size": 3}])]]
)
def test_a_type_that_refers_to_itself_is_refused(other: list[dict[str, Any]]) -> None:
    """Fastavro goes as deep as the records say: a few thousand values inside each other ended the process.

    To a reader that looks for the name in another namespace, it is not itself what the type refers to.
    """
    chain = {"type": "record", "name": "n", "namespace": "a", "fields": [field(901, "next", ["null", "n"])]}
    schema = schema_with([], *other, field(902, "chain", chain))
    others = b"\x00" * len(other) + b"\x02\x02\x02\x00"
    content = write_packed(Packing(schema), [record(others=others)], {})

    with pytest.raises(InvalidMetadata, match="refers to itself"):
        statuses_and_paths(content, MANIFEST)


def test_items_that_take_no_bytes_are_refused() -> None:
    """Fastavro goes through as many of them as the records say."""
    schema = schema_with([], field(900, "nothing", {"type": "array", "items": "null"}))
    content = write_packed(Packing(schema), [record(others=write_long(1) + b"\x00")], {})

    with pytest.raises(InvalidMetadata, match="an array of nothing"):
        statuses_and_paths(content, MANIFEST)
