"""Bodies that are read, and the words with which others are refused."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.bodies.json_body import Body, _is_suspicious, check_count, parse_body
from app.api.bodies.namespaces import CreateNamespaceBody
from app.api.bodies.past import RestoreBody
from app.api.bodies.table.appends import AppendFilesBody
from app.api.bodies.table.commits import CommitBody
from app.api.bodies.table.conflicts import CheckConflictsBody
from app.api.bodies.table.expiry import ExpireSnapshotsBody
from app.api.bodies.table.tables import CreateTableBody
from app.engine.change.updates import SetProperties
from app.errors import InvalidRequest


def refusal(model: type[Body], raw: str | bytes) -> str:
    with pytest.raises(InvalidRequest) as caught:
        parse_body(model, raw.encode() if isinstance(raw, str) else raw)
    return str(caught.value)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"{", "Invalid JSON"),
        (b"{'namespace': []}", "Invalid JSON"),
        (b"\xff\xfe{}", "Invalid JSON"),
        (b'{"namespace": ["\xc3\x28"]}', "Invalid JSON"),
        (b'{"namespace": ["\\ud800"]}', "Invalid JSON"),
        (b'{"namespace": ["a"]} x', "Invalid JSON"),
        (b"[]", "an object"),
        (b"null", "an object"),
        (b'"text"', "an object"),
        (b"{}", "namespace: Field required"),
        (b'{"namespace": "a"}', "namespace: Input should be a valid array"),
        (b'{"namespace": ["a", 1]}', "namespace[1]: Input should be a valid string"),
        (b'{"namespace": ["a"], "properties": {"x": 1}}', "properties.x: Input should be a valid string"),
        (b'{"namespace": ["a"], "properties": []}', "properties: Input should be an object"),
        (b"[" * 100_000, "recursion limit"),
        (b'{"namespace": ' + b"[" * 500 + b"]" * 500 + b"}", "recursion limit"),
    ],
)
def test_broken_body_is_refused_with_its_reason(raw: bytes, reason: str) -> None:
    assert reason in refusal(CreateNamespaceBody, raw)


@pytest.mark.parametrize(
    ("model", "raw", "message"),
    [
        (AppendFilesBody, '{"files": []}', "Invalid body: files: There should be at least 1 item, not 0"),
        (CheckConflictsBody, '{"operation": {}}', "Invalid body: operation.kind: Field required"),
        (
            CheckConflictsBody,
            '{"operation": {"kind": "merge"}}',
            "Invalid body: operation.kind: Input should be one of 'append', 'delete', 'overwrite', ",
        ),
    ],
)
def test_refusals_have_no_words_of_the_library(model: type[Body], raw: str, message: str) -> None:
    assert refusal(model, raw).startswith(message)


def test_unknown_fields_are_passed_over() -> None:
    body = parse_body(CreateNamespaceBody, b'{"namespace": ["a"], "novel": {"x": [1]}}')

    assert body == CreateNamespaceBody(namespace=("a",))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("grace-ms", "unknown field 'grace-ms'; did you mean grace-period-ms?"),
        ("grace_period_ms", "unknown field 'grace_period_ms'; did you mean grace-period-ms?"),
        ("OLDER-THAN-MS", "unknown field 'OLDER-THAN-MS'; did you mean older-than-ms?"),
        ("x", "unknown field 'x'; known are: dry-run, older-than-ms, retain-last,"),
        ("y" * 1_000_000, f"unknown field '{'y' * 60}'; known are: "),
        ("", "unknown field ''; known are: "),
    ],
)
def test_unknown_field_of_an_own_body_is_refused_with_the_one_that_was_meant(name: str, reason: str) -> None:
    assert reason in refusal(ExpireSnapshotsBody, json.dumps({name: 5}))


def test_a_missing_field_that_is_there_misspelled_is_named() -> None:
    assert refusal(RestoreBody, '{"at-ms": 1, "tables": []}') == (
        "Invalid body: unknown field 'at-ms'; known are: at, tables, dry-run"
    )
    assert refusal(RestoreBody, '{"tables": []}') == "Invalid body: at: Field required"
    assert refusal(RestoreBody, '{"tables": [], "x": NaN}').startswith("Invalid body: ")


def test_unknown_field_is_named_where_it_stands() -> None:
    raw = b'{"files": [{"file-path": "a"}, {"file-path": "b", "spec": 1}]}'

    assert (
        refusal(AppendFilesBody, raw) == "Invalid body: files[1]: unknown field 'spec'; did you mean spec-id?"
    )


@pytest.mark.parametrize(
    "number",
    ["NaN", "Infinity", "-Infinity", "9223372036854775808", "-9223372036854775809", "1e999", "9" * 5000],
)
def test_number_that_64_bits_cannot_hold_is_refused_wherever_it_stands(number: str) -> None:
    assert "not a" in refusal(CreateNamespaceBody, f'{{"namespace": ["a"], "novel": {{"x": [{number}]}}}}')


@pytest.mark.parametrize(
    "number", ["9223372036854775807", "-9223372036854775808", "1e300", "0.12345678901234567890"]
)
def test_number_that_64_bits_can_hold_is_taken(number: str) -> None:
    parse_body(CreateNamespaceBody, f'{{"namespace": ["a"], "novel": {number}}}'.encode())


def test_text_that_looks_like_a_large_number_is_text() -> None:
    raw = b'{"namespace": ["99999999999999999999999"], "properties": {"x": "NaN 1e999"}}'

    assert parse_body(CreateNamespaceBody, raw).namespace == ("99999999999999999999999",)


def test_refusal_names_the_part_in_json_words() -> None:
    raw = '{"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": {"snapshot-id": "x"}}]}'

    assert refusal(CommitBody, raw).startswith("Invalid body: updates[0].snapshot.")


def test_refusal_inside_nested_types_names_the_innermost_part() -> None:
    inner = '{"type": "struct", "fields": [{"id": 2, "name": "b", "required": true, "type": "lonk"}]}'
    field = f'{{"id": 1, "name": "a", "required": true, "type": {inner}}}'
    raw = f'{{"name": "t", "schema": {{"type": "struct", "fields": [{field}]}}}}'

    message = refusal(CreateTableBody, raw)

    assert message.startswith("Invalid body: schema.fields[0].type.fields[0].type: ")
    assert "lonk" in message


@pytest.mark.parametrize("action", ["explode", "", "x" * 10_000])
def test_unknown_update_is_refused_with_the_known_ones(action: str) -> None:
    message = refusal(CommitBody, f'{{"requirements": [], "updates": [{{"action": "{action}"}}]}}')

    assert message.startswith("Invalid body: updates[0]: ")
    assert "add-snapshot" in message
    assert len(message) < 1_000


def test_unknown_requirement_is_refused_with_the_known_ones() -> None:
    message = refusal(CommitBody, '{"updates": [], "requirements": [{"type": "assert-weather"}]}')

    assert message.startswith("Invalid body: requirements[0]: ")
    assert "assert-table-uuid" in message


def test_kind_is_read_without_regard_to_case() -> None:
    raw = b'{"requirements": [], "updates": [{"action": "SET-Properties", "updated": {"a": "b"}}]}'

    assert parse_body(CommitBody, raw).updates == (SetProperties(updates={"a": "b"}),)


def test_huge_input_is_not_echoed() -> None:
    raw = '{"namespace": ["a"], "properties": {"' + "k" * 100_000 + '": 1}}'

    assert len(refusal(CreateNamespaceBody, raw)) < 1_000


SUSPECT = re.compile(rb"[0-9]{19,}|[eE][+]?[0-9]{3,}|NaN|Infinity")


@given(
    st.lists(
        st.one_of(
            st.integers(10**17, 10**20).map(lambda number: b"%d" % number),
            st.sampled_from(
                [b"e", b"E", b"+", b"-", b"000", b"12", b"NaN", b"Inf", b"Infinity", b" ", b'"', b"."]
            ),
            st.sampled_from([b"9223372036854775807", b"9223372036854775808", b"x" * 20]),
        )
    ).map(b"".join)
)
def test_numbers_are_suspected_as_a_regular_expression_would(raw: bytes) -> None:
    suspects = [match[0] for match in SUSPECT.finditer(raw)]
    is_long = [text for text in suspects if not (text.isdigit() and len(text) == 19 and int(text) < 2**63)]

    assert _is_suspicious(raw) is bool(is_long)


@pytest.mark.parametrize("values", [b"[]," * 700, b"{}," * 700, b"1," * 2000, b"[" * 2000], ids=repr)
def test_too_many_values_are_refused_before_they_are_made(values: bytes) -> None:
    check_count(values, 3000)
    with pytest.raises(
        InvalidRequest, match="it has more than 1000 values, counted by commas and opening brackets"
    ):
        check_count(values, 1000)
