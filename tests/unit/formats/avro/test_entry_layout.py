"""Manifests as writers lay them out: fixed values with their length, unions either way, blocks with sizes, lies."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from app.engine.model.files.manifests import DataFile, EntryStatus, FileContent, ManifestEntry, ManifestFile
from app.engine.model.ids import Location, SpecId
from app.engine.model.partition_spec import PartitionSpec
from app.errors import InvalidMetadata
from app.formats.avro.packers import Packing, write_packed
from app.formats.avro.types import write_long
from app.formats.manifests.columns import ManifestColumns
from app.formats.manifests.writer import write_manifest
from tests.builders.manifest_records import FIXED, field, record, schema_with, text
from tests.strategies.manifest_entries import table_of

LOCATION = Location("memory://m.avro")
LISTED = ManifestFile(LOCATION, 0, SpecId(3), sequence_number=7)


def read(schema: Any, *records: bytes, listed: ManifestFile = LISTED) -> list[DataFile]:
    content = write_packed(Packing(schema), records, {"partition-spec-id": "3"})
    return [entry.file for entry in ManifestColumns(listed, content)]


# --- fixed values, which the reference writes with their length before them


def test_fixed_values_as_avro_has_them() -> None:
    (file,) = read(schema_with([FIXED]), record(b"\x02" + b"01234"))

    assert file.partition == (b"01234",)


def test_fixed_values_as_the_reference_has_them() -> None:
    files = read(schema_with([FIXED]), *[record(b"\x02" + b"\x0a" + b"0123%d" % at) for at in range(9)])

    assert [file.partition for file in files] == [(b"0123%d" % at,) for at in range(9)]
    assert {file.record_count for file in files} == {5}


def test_fixed_values_whose_last_byte_looks_like_the_start_of_a_number() -> None:
    """Without their length these values would swallow the record count, and nothing would look wrong."""
    (file,) = read(schema_with([FIXED]), record(b"\x02" + b"\x0a" + b"0123\xb4"))

    assert (file.partition, file.record_count) == ((b"0123\xb4",), 5)


def test_the_listed_rows_tell_how_a_value_is_laid_out_that_begins_like_a_length() -> None:
    schema, packed = schema_with([FIXED]), record(b"\x02" + b"\x0a1234", rows=1000)

    (file,) = read(schema, packed, listed=replace(LISTED, added_rows_count=1000))

    assert (file.partition, file.record_count) == ((b"\x0a1234",), 1000)


def test_null_and_fixed_values_one_after_the_other() -> None:
    packed = [record(b"\x00") if at % 3 else record(b"\x02\x0a0123%d" % (at % 10)) for at in range(60)]

    files = read(schema_with([FIXED]), *packed)

    assert [file.partition for file in files] == [
        (None if at % 3 else b"0123%d" % (at % 10),) for at in range(60)
    ]


def test_what_neither_layout_fits() -> None:
    with pytest.raises(InvalidMetadata, match=f"Cannot read manifest {LOCATION}"):
        read(schema_with([FIXED]), record(b"\x02" + b"\x0c" + b"01234"))


# --- unions


@pytest.mark.parametrize(
    ("kind", "null", "value"),
    [
        (["null", "int"], b"\x00", b"\x02\x0e"),
        (["int", "null"], b"\x02", b"\x00\x0e"),
        (["null", "int", "long"], b"\x00", b"\x04\x0e"),
        (["long", "null", "int"], b"\x02", b"\x04\x0e"),
        (["null", "string", "int"], b"\x00", b"\x04\x0e"),
    ],
)
def test_unions_in_any_order(kind: Any, null: bytes, value: bytes) -> None:
    schema = schema_with([], field(140, "sort_order_id", kind))

    files = read(schema, *[record(others=value if at % 2 else null) for at in range(40)])

    assert [file.sort_order_id for file in files] == [7 if at % 2 else None for at in range(40)]


def test_a_value_of_a_type_that_a_field_cannot_have() -> None:
    schema = schema_with([], field(140, "sort_order_id", ["null", "string", "int"]))

    with pytest.raises(InvalidMetadata, match=rf"{LOCATION}: its field sort_order_id makes no sense"):
        read(schema, record(others=b"\x02" + text("seven")))


@pytest.mark.parametrize("branch", [4, -2, 2**40])
def test_a_branch_that_a_union_does_not_have(branch: int) -> None:
    schema = schema_with([], field(140, "sort_order_id", ["null", "int"]))

    with pytest.raises(InvalidMetadata, match=f"{LOCATION}: a union has no such branch"):
        read(schema, record(others=write_long(branch) + b"\x02"))


def test_a_branch_in_more_bytes_than_it_needs() -> None:
    schema = schema_with([], field(140, "sort_order_id", ["null", "int"]))

    with pytest.raises(InvalidMetadata, match=str(LOCATION)):
        read(schema, record(others=b"\x82\x00\x0e"))


@pytest.mark.parametrize(
    ("partition", "packed", "expected"),
    [
        ([field(1000, "order_x20date", ["int", "null"])], b"\x00\x0e", (7,)),
        ([field(1000, "a", ["null", "string"]), field(1001, "a_x2Db", "null")], b"\x02\x02x", ("x", None)),
        ([field(1000, "a", {"type": "int", "logicalType": "date"})], write_long(-(2**31)), (-(2**31),)),
        ([field(1000, "a", {"type": "long", "logicalType": "timestamp-millis"})], b"\x06", (3000,)),
        ([], b"", ()),
    ],
)
def test_partitions(partition: list[dict[str, Any]], packed: bytes, expected: tuple[Any, ...]) -> None:
    (file,) = read(schema_with(partition), record(packed))

    assert file.partition == expected


def test_named_types_that_are_used_again() -> None:
    name = {"type": "fixed", "name": "d", "namespace": "a.b", "size": 2, "logicalType": "decimal", "scale": 1}
    again = [field(1000, "x", name | {"precision": 4}), field(1001, "y", ["null", "a.b.d"])]

    (file,) = read(schema_with(again), record(b"\x00\x0f" + b"\x02\xff\xff"))

    assert [str(value) for value in file.partition] == ["1.5", "-0.1"]


# --- arrays of pairs


def pairs(value: Any = "bytes", *, order: int = 1) -> dict[str, Any]:
    both = [field(126, "key", "int"), field(127, "value", value)][::order]
    return {
        "type": "array",
        "items": {"type": "record", "name": "k126_v127", "fields": both},
        "logicalType": "map",
    }


def bounds_read(kind: Any, packed: bytes) -> dict[int, bytes] | None:
    (file,) = read(schema_with([], field(125, "lower_bounds", kind)), record(others=packed))
    return None if file.lower_bounds is None else dict(file.lower_bounds)


def test_an_empty_map() -> None:
    assert bounds_read(pairs(), b"\x00") == {}


def test_a_map_in_blocks_that_say_their_size() -> None:
    first, second = b"\x02\x04ab" + b"\x04\x00", b"\x06\x02c"

    assert bounds_read(
        pairs(), write_long(-2) + write_long(len(first)) + first + b"\x02" + second + b"\x00"
    ) == {1: b"ab", 2: b"", 3: b"c"}


@pytest.mark.parametrize("size", [0, 4, 6, 1000, -5])
def test_a_block_that_lies_about_its_size(size: int) -> None:
    with pytest.raises(InvalidMetadata, match=f"{LOCATION}: the items of an array have another size"):
        bounds_read(pairs(), write_long(-1) + write_long(size) + b"\x02\x06abc" + b"\x00")


def test_pairs_with_the_value_first() -> None:
    assert bounds_read(pairs(order=-1), b"\x02" + b"\x04ab\x02" + b"\x00") == {1: b"ab"}


def test_optional_values_in_a_map() -> None:
    kind = pairs(["null", "bytes"])

    assert bounds_read(kind, b"\x04" + b"\x02\x02\x04ab" + b"\x04\x00" + b"\x00") == {1: b"ab"}


def test_avros_own_kind_of_map() -> None:
    assert bounds_read({"type": "map", "values": "bytes"}, b"\x02" + b"\x0412" + b"\x04ab" + b"\x00") == {
        12: b"ab"
    }


def test_counts_with_the_value_first_are_not_mixed_up() -> None:
    both = [field(120, "value", "long"), field(119, "key", "int")]
    kind = {"type": "array", "items": {"type": "record", "name": "k119_v120", "fields": both}}

    (file,) = read(
        schema_with([], field(109, "value_counts", kind)), record(others=b"\x02" + b"\x12\x02" + b"\x00")
    )

    assert file.value_counts == {1: 9}


def test_a_count_beyond_the_end() -> None:
    with pytest.raises(InvalidMetadata, match=f"{LOCATION}: an array has fewer items than it says"):
        bounds_read(pairs(), write_long(2**40))


# --- required values


@pytest.mark.parametrize(
    "missing", ["status", "file_path", "file_format", "record_count", "file_size_in_bytes"]
)
def test_a_required_field_that_is_null(missing: str) -> None:
    schema = schema_with([])
    entry = schema["fields"]
    for item in [*entry, *entry[1]["type"]["fields"]]:
        if item["name"] == missing:
            item["type"] = ["null", item["type"]]
    parts = {
        "status": b"\x02",
        "file_path": text("s3://b/x"),
        "file_format": text("ORC"),
        "record_count": b"\x02",
        "file_size_in_bytes": b"\x02",
    }
    packed = b"".join(b"\x00" if name == missing else value for name, value in parts.items())

    with pytest.raises(InvalidMetadata, match=f"{LOCATION}: an entry has no {missing}"):
        read(schema, packed)


@pytest.mark.parametrize("status", [3, -1, 2**40])
def test_a_status_that_there_is_not(status: int) -> None:
    with pytest.raises(InvalidMetadata, match=str(LOCATION)):
        read(schema_with([]), write_long(status) + record()[1:])


# --- whole files


def whole() -> bytes:
    schema, spec = table_of(["string", "fixed[16]"], ["identity", "identity"])
    files = [
        DataFile(
            FileContent.DATA,
            Location(f"s3://b/{at}"),
            "parquet",
            spec.spec_id,
            (f"p{at % 3}", b"0123456789abcdef"),
            at,
            100,
            lower_bounds={1: b"ab", 2: b"c" * at},
        )
        for at in range(40)
    ]
    entries = [ManifestEntry(EntryStatus.ADDED, None, None, None, file) for file in files]
    written = write_manifest(entries, schema=schema, spec=spec, format_version=2, snapshot_id=None)
    return written.content


def test_every_cut_is_told() -> None:
    content = whole()
    listed = replace(LISTED, added_files_count=40)

    for end in range(len(content)):
        with pytest.raises(InvalidMetadata, match=f"Cannot read manifest {LOCATION}"):
            tuple(ManifestColumns(listed, content[:end]))


def test_a_file_that_is_something_else() -> None:
    for content in (b"", b"PAR1", b"Obj\x01", json.dumps({}).encode(), b"Obj\x01" + b"\xff" * 50):
        with pytest.raises(InvalidMetadata, match=f"Cannot read manifest {LOCATION}"):
            tuple(ManifestColumns(LISTED, content))


def test_a_manifest_of_another_spec() -> None:
    spec = PartitionSpec(spec_id=SpecId(9), fields=())
    schema, _ = table_of(["int"], ["identity"])
    content = write_manifest([], schema=schema, spec=spec, format_version=2, snapshot_id=None).content

    with pytest.raises(InvalidMetadata, match="partition spec 9, its manifest list says 3"):
        tuple(ManifestColumns(LISTED, content))


def test_records_of_another_kind() -> None:
    schema = {"type": "record", "name": "user", "fields": [{"name": "name", "type": "string"}]}
    content = write_packed(Packing(schema), [text("Ada")], {})

    with pytest.raises(InvalidMetadata, match=rf"{LOCATION}: its entries have no status"):
        tuple(ManifestColumns(LISTED, content))


# --- what no writer means


def array_of(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "record", "name": name, "fields": list(fields)}}


@pytest.mark.parametrize(
    ("other", "packed"),
    [
        (field(132, "split_offsets", array_of("offset", field(133, "at", "long"))), b"\x02\x08\x00"),
        (
            field(
                108, "column_sizes", array_of("p", {"name": "key", "type": "string"}, field(1, "x", "long"))
            ),
            b"\x02\x021\x08\x00",
        ),
    ],
)
def test_lists_and_maps_of_something_else(other: dict[str, Any], packed: bytes) -> None:
    with pytest.raises(InvalidMetadata, match=f"{other['name']} makes no sense"):
        read(schema_with([], other), record(others=packed))


def test_a_decimal_of_millions_of_digits() -> None:
    """To convert it would keep every thread of the process waiting for hours."""
    decimal = field(1000, "d", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2})
    digits = b"\x7f" * (16 << 20)

    with pytest.raises(InvalidMetadata, match="too many digits"):
        read(schema_with([decimal]), record(write_long(len(digits)) + digits))


@pytest.mark.parametrize("rows", [2**62, -(2**63)])
def test_more_row_ids_than_there_are(rows: int) -> None:
    with pytest.raises(InvalidMetadata, match="more row ids than there are"):
        read(schema_with([]), *[record(rows=rows)] * 4, listed=replace(LISTED, first_row_id=2**61))


@pytest.mark.parametrize("good", [14, 15, 16, 40])
def test_text_that_is_longer_than_its_file(good: int) -> None:
    """Also where a record is to be learnt from, of which the text would be a part of any size."""
    schema = schema_with([], field(143, "referenced_data_file", "string"))
    records = [record(others=text("x" * at)) for at in range(good)]

    with pytest.raises(InvalidMetadata, match=f"Cannot read manifest {LOCATION}: it is cut off"):
        read(schema, *records, record(others=write_long(1 << 40)))


def test_header_that_is_longer_than_any() -> None:
    schema = {**schema_with([]), "doc": "x" * (1 << 20)}
    with pytest.raises(InvalidMetadata, match=f"Cannot read manifest {LOCATION}: its schema is too long"):
        read(schema, record())

    spec = {"partition-spec": "[" + " " * (1 << 20) + "]"}
    content = write_packed(Packing(schema_with([])), [record()], spec)
    with pytest.raises(InvalidMetadata, match="its partition spec is too long"):
        ManifestColumns(LISTED, content)


@pytest.mark.parametrize(
    ("kind", "packed", "expected"),
    [
        ({"type": "array", "items": "string"}, b"\x04" + text("a") + text("b") + b"\x00", ("a", "b")),
        ({"type": "array", "items": {"type": "array", "items": "int"}}, b"\x02\x02\x0e\x00\x00", ((7,),)),
        (
            {"type": "record", "name": "r", "fields": [field(1001, "a", "int")]},
            b"\x0e",
            ((1001, 7),),
        ),
    ],
)
def test_partition_value_of_several_parts_can_be_a_key(kind: Any, packed: bytes, expected: Any) -> None:
    """Filters and delete files look partitions up in dictionaries."""
    first, second = read(schema_with([field(1000, "p", kind)]), record(packed), record(packed))

    assert (first.partition, first.partition_key) == ((expected,), second.partition_key)
    assert {first.partition_key: 1}[second.partition_key]
