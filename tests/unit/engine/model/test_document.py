"""The ground of every document: strict numbers, real JSON, unknown fields kept."""

from __future__ import annotations

import json
import sys
from types import FrameType

import pytest
from pydantic import ValidationError

from app.engine.model.document import MAX_JSON_LEVELS, MAX_LONG, Document, check_json_value
from app.engine.model.ids import SnapshotId
from app.engine.model.refs import SnapshotRef
from app.engine.model.schema import Schema
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.view_metadata import ViewMetadata
from app.error_frames import MANY_FAULTS
from app.errors import InvalidMetadata
from tests.unit.engine.documents import column, encoded, list_of, schema_json


def refusal(content: bytes) -> str:
    with pytest.raises(InvalidMetadata) as caught:
        SnapshotRef.from_json(content)
    return str(caught.value)


def ref_with(extra: str) -> bytes:
    return ('{"snapshot-id":5,"type":"branch",' + extra + "}").encode()


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        ('"5"', "valid integer"),
        ("5.0", "valid integer"),
        ("true", "valid integer"),
        ("null", "valid integer"),
        ("NaN", "valid integer"),
        (str(MAX_LONG + 1), "less than or equal to 9223372036854775807"),
        (str(-MAX_LONG - 2), "greater than or equal to -9223372036854775808"),
    ],
)
def test_id_that_is_no_64_bit_integer_is_refused(number: str, reason: str) -> None:
    message = refusal(('{"snapshot-id":' + number + ',"type":"branch"}').encode())

    assert message.startswith("snapshot-id: ")
    assert reason in message


@pytest.mark.parametrize("number", ['"1"', "1.0", "true", str(2**31)])
def test_id_that_is_no_32_bit_integer_is_refused(number: str) -> None:
    with pytest.raises(InvalidMetadata, match=r"^schema-id: "):
        Schema.from_json(f'{{"type":"struct","schema-id":{number},"fields":[]}}')


@pytest.mark.parametrize("number", [MAX_LONG, -MAX_LONG - 1, 0])
def test_id_at_the_limit_of_64_bits_is_taken(number: int) -> None:
    ref = SnapshotRef.from_json(encoded({"snapshot-id": number, "type": "tag"}))

    assert ref.snapshot_id == number


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b'{"snapshot-id":5,"type":"branch"}x',
        ref_with('"x":"\\ud800"'),
        ref_with('"x":"\\ud800\\u0041"'),
    ],
)
def test_text_that_is_no_json_is_refused(content: bytes) -> None:
    assert "Invalid JSON" in refusal(content)


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999", "[1,[NaN]]", '{"y":{"z":1e999}}'])
def test_number_that_json_does_not_have_is_refused_in_fields_nobody_knows(value: str) -> None:
    assert refusal(ref_with(f'"x":{value}')) == "x: not a number that JSON has"


def test_unknown_field_nested_too_deeply_is_refused() -> None:
    deepest = "[" * (MAX_JSON_LEVELS - 1) + "]" * (MAX_JSON_LEVELS - 1)
    SnapshotRef.from_json(ref_with(f'"x":{deepest}'))

    assert "levels deep" in refusal(ref_with(f'"x":[[{deepest}]]'))


def test_json_nested_beyond_reason_is_refused() -> None:
    levels = 5_000

    assert "recursion limit" in refusal(ref_with('"x":' + "[" * levels + "]" * levels))


def deep_schema(levels: int) -> dict[str, object]:
    kind: object = "int"
    for level in range(levels):
        kind = list_of(level + 2, kind)
    return schema_json(column(1, "deep", kind))


def called_deep_in_the_stack(frames: int, content: bytes) -> Schema:
    return Schema.from_json(content) if frames == 0 else called_deep_in_the_stack(frames - 1, content)


def test_types_that_do_not_fit_on_the_stack_are_refused_not_a_crash() -> None:
    content = encoded(deep_schema(150))
    assert len(Schema.from_json(content).columns) == 151

    with pytest.raises(InvalidMetadata, match="nested too deeply"):
        called_deep_in_the_stack(700, content)


def test_unknown_fields_survive_whatever_their_names() -> None:
    extra = {
        "vendor": {"a": [None, 1, 2.5, {"b": None}]},
        "snapshot_id": 7,
        "self": 1,
        "_fields_set": 2,
        "__class__": 3,
        "is_branch": False,
        "model_config": [],
        "": "",
        "big": 10**30,
        "ключ": "😀",
    }
    document = {"snapshot-id": 5, "type": "branch"} | extra

    ref = SnapshotRef.from_json(encoded(document))

    assert ref.snapshot_id == 5
    assert ref.is_branch
    assert ref.unknown_fields == extra
    assert json.loads(ref.to_json()) == document
    assert json.loads(ref.replace(snapshot_id=6).to_json()) == document | {"snapshot-id": 6}


def test_unknown_fields_can_be_exchanged_whatever_their_names() -> None:
    ref = SnapshotRef.from_json(encoded({"snapshot-id": 5, "type": "branch", "old": 1}))

    changed = ref.with_unknown_fields({"snapshot_id": 7, "_fields_set": 1})

    assert json.loads(changed.to_json()) == {
        "snapshot-id": 5,
        "type": "branch",
        "snapshot_id": 7,
        "_fields_set": 1,
    }
    assert ref.unknown_fields == {"old": 1}


def test_fields_are_known_by_the_names_of_the_spec_only() -> None:
    assert refusal(b'{"snapshot_id":5,"type":"branch"}') == "snapshot-id: Field required"


def test_python_may_name_fields_its_own_way() -> None:
    assert SnapshotRef(snapshot_id=SnapshotId(5), type="tag").to_json() == b'{"snapshot-id":5,"type":"tag"}'


def test_nulls_are_left_out() -> None:
    ref = SnapshotRef.from_json(ref_with('"max-ref-age-ms":null,"vendor":null'))

    assert ref.to_json() == b'{"snapshot-id":5,"type":"branch"}'
    assert ref.to_object() == {"snapshot-id": 5, "type": "branch"}


def test_documents_do_not_change_once_made() -> None:
    ref = SnapshotRef(snapshot_id=SnapshotId(5), type="tag")

    with pytest.raises(ValidationError):
        ref.snapshot_id = SnapshotId(6)  # type: ignore[misc]  # what must not work


def test_copy_with_other_fields_computes_anew() -> None:
    schema = Schema.from_json(encoded(schema_json(column(1, "a"))))
    assert list(schema.columns) == [1]

    changed = schema.replace(fields=())

    assert list(changed.columns) == []
    assert list(schema.columns) == [1]


def test_refusal_names_the_part_inside_lists_and_types() -> None:
    inner = {"type": "struct", "fields": [{"id": 5, "required": True, "type": "int"}]}

    with pytest.raises(
        InvalidMetadata, match=r"^fields\[1\]\.type\.element\.fields\[0\]\.name: Field required$"
    ):
        Schema.from_json(encoded(schema_json(column(1, "a"), column(2, "b", list_of(3, inner)))))


def test_refusal_of_a_whole_document_names_no_part() -> None:
    assert refusal(b"[]") == "Input should be an object"
    with pytest.raises(InvalidMetadata, match=r"^a snapshot needs a manifest-list$"):
        Snapshot.from_json(b'{"snapshot-id":1,"timestamp-ms":0}')


def test_lone_surrogate_in_a_value_made_in_python_is_refused() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        check_json_value({"a": ["\ud800"]})
    with pytest.raises(ValueError, match="surrogates"):
        check_json_value({"\udfff": 1})


@pytest.mark.parametrize("model", [TableMetadata, ViewMetadata])
def test_every_list_and_map_of_a_document_ends_at_its_first_fault(model: type[Document]) -> None:
    """Collecting a fault for each of a hundred thousand snapshots takes seconds, and hundreds of megabytes."""
    assert slow_parts_of(model.__pydantic_core_schema__) == []


def slow_parts_of(schema: object) -> list[object]:
    """Return the lists and maps in a schema of pydantic that go on after a fault."""
    match schema:
        case {"type": "tuple" | "list" | "dict", **rest} if not rest.get("fail_fast"):
            own = [schema]
        case _:
            own = []
    match schema:
        case dict():
            # Unknown fields are a part of the model itself, which has no such switch.
            inner = [value for name, value in schema.items() if name != "extras_schema"]
        case list() | tuple():
            inner = list(schema)
        case _:
            inner = []
    return own + [part for value in inner for part in slow_parts_of(value)]


def test_very_many_faults_are_counted_and_nothing_stays_of_them() -> None:
    faults = ",".join(f'"x{number}":NaN' for number in range(MANY_FAULTS + 1))

    with pytest.raises(InvalidMetadata, match=rf"^{MANY_FAULTS + 1} parts of it are invalid$") as caught:
        SnapshotRef.from_json(ref_with(faults))

    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


MANY = 1000
LOG = {"metadata-file": "s3://b/t/metadata/00000-a.metadata.json", "timestamp-ms": 1}
STATISTICS = {
    "snapshot-id": 1,
    "statistics-path": "s3://b/t/metadata/a.puffin",
    "file-size-in-bytes": 1,
    "file-footer-size-in-bytes": 1,
    "blob-metadata": [],
}


@pytest.mark.parametrize(
    ("model", "document"),
    [
        (
            TableMetadata,
            {"refs": {f"b{number}": {"snapshot-id": 5, "type": "tag"} for number in range(MANY)}},
        ),
        (TableMetadata, {"properties": {f"p{number}": "v" for number in range(MANY)}}),
        (TableMetadata, {"metadata-log": [LOG] * MANY}),
        (TableMetadata, {"snapshot-log": [{"snapshot-id": 1, "timestamp-ms": 1}] * MANY}),
        (TableMetadata, {"statistics": [STATISTICS] * MANY}),
        (TableMetadata, {"schemas": [schema_json(*(column(1, "a") for _ in range(MANY)))]}),
        (Snapshot, {"summary": {f"p{number}": "v" for number in range(MANY)}}),
        (ViewMetadata, {"properties": {f"p{number}": "v" for number in range(MANY)}}),
        (ViewMetadata, {"version-log": [{"timestamp-ms": 1, "version-id": 1}] * MANY}),
    ],
)
def test_other_threads_get_their_turn_while_a_long_document_is_read(
    model: type[Document], document: dict[str, object]
) -> None:
    """The interpreter looks whether others wait whenever the parser calls a Python function."""
    calls = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        # What else is missing does not matter: all parts are read before that is said.
        with pytest.raises(InvalidMetadata):
            model.from_json(encoded(document))
    finally:
        sys.setprofile(before)

    assert calls > MANY
