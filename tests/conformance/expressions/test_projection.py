"""Filters in JSON and their projections: the same questions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.engine.expressions.binding import bind
from app.engine.expressions.expression_json import parse_expression, to_json
from app.engine.model.data_types.transforms import find_transform
from app.engine.model.data_types.types import parse_primitive
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema
from tests.builders.filters import project
from tests.conformance.expressions import agreed_differences as agreed
from tests.conformance.expressions.columns import (
    WITHOUT_BINARY,
    WITHOUT_NANOSECONDS,
    Question,
    questions,
    rewritten,
)
from tests.conformance.expressions.reference import Json, Reference
from tests.strategies.filters import COMPARISONS, OF_FLOATS, PREFIXES, SETS, UNARY

pytestmark = pytest.mark.spark


@given(asked=questions(depth=3))
def test_a_filter_is_read_and_written_alike(reference: Reference, asked: Question) -> None:
    ours = to_json(asked.expression)
    theirs = reference.rewritten(asked.document)

    assert rewritten(reference.rewritten(ours), asked.schema) == rewritten(theirs, asked.schema)
    assert to_json(parse_expression(ours)) == ours


@given(asked=questions(depth=2, kinds=[WITHOUT_BINARY]))
def test_a_filter_is_bound_alike(reference: Reference, asked: Question) -> None:
    theirs = asked.table(reference).bound(asked.document)

    assert to_json(asked.bound) == rewritten(theirs, asked.schema)


@given(asked=questions(depth=2, kinds=[WITHOUT_NANOSECONDS]), strict=st.booleans())
def test_a_filter_is_projected_alike(reference: Reference, asked: Question, strict: bool) -> None:
    transforms = {field.transform for field in asked.spec.fields}
    assume(not agreed.on_projection(asked))
    # It forgets that with these the lowest numbers wrap around to the highest.
    assume(not transforms & {"truncate[3]", "truncate[10]"})

    theirs = asked.table(reference).projected(asked.document, strict=strict)

    ours = to_json(project(asked.expression, asked.schema, asked.spec, strict=strict))
    assert ours == rewritten(theirs, asked.partition_schema())


_KINDS = {
    "int": (-1, 0, 1, 7),
    "long": (-1, 0, 1, 7),
    "decimal(9,2)": ("-0.01", "0.00", "0.05"),
    "date": ("1968-02-29", "1969-12-31", "1970-01-01", "2024-02-29"),
    "timestamp": ("1969-12-31T23:59:59.999999", "1970-01-01T00:00:00", "2024-02-29T01:00:00"),
    "timestamptz": ("1969-12-31T23:59:59.999999+00:00", "2024-02-29T01:00:00.000000+00:00"),
    "string": ("", "ab", "abc", "abcd", "a\U0001f600b"),
    "uuid": ("00000000-0000-0000-8000-000000000001",),
    "boolean": (True, False),
    "double": (-1.5, 0.0),
}
_KNOWN = "identity void bucket[4] truncate[2] truncate[4] year month day hour".split()
_UNKNOWN = "zorder bucketed[7] bucket[4,x]".split()


def _may_transform(transform: str, kind: str) -> bool:
    known = find_transform(transform)
    return known is None or known.applies_to(parse_primitive(kind))


@pytest.mark.parametrize(
    ("kind", "transform"),
    [
        (kind, transform)
        for kind in _KINDS
        for transform in _KNOWN + _UNKNOWN
        if _may_transform(transform, kind)
    ],
)
def test_every_operation_is_projected_alike_through_every_transform(
    reference: Reference, kind: str, transform: str
) -> None:
    """Transforms that this build does not know say nothing, and neither does void."""
    column = {"id": 1, "name": "c", "required": False, "type": kind}
    field = {"name": "p", "transform": transform, "source-id": 1, "field-id": 1000}
    schema = {"type": "struct", "schema-id": 0, "fields": [column]}
    asked = _Asked(reference, schema, {"spec-id": 0, "fields": [field]})
    different = [
        (document, strict)
        for document in _every_predicate(kind)
        for strict in (False, True)
        if not asked.is_projected_alike(document, strict=strict)
    ]

    assert different == []


def _every_predicate(kind: str) -> Iterator[Json]:
    for operation in UNARY + (OF_FLOATS if kind == "double" else ()):
        yield {"type": operation, "term": "c"}
    for literal in _KINDS[kind]:
        for operation in COMPARISONS + (PREFIXES if kind == "string" else ()):
            yield {"type": operation, "term": "c", "value": literal}
    for operation in SETS:
        yield {"type": operation, "term": "c", "values": list(_KINDS[kind])}


class _Asked:
    """One table whose projections are compared."""

    def __init__(self, reference: Reference, schema: Json, spec: Json) -> None:
        self._table = reference.table(schema, spec)
        self._documents = schema, spec
        self._schema, self._spec = Schema.from_object(schema), PartitionSpec.from_object(spec)

    def is_projected_alike(self, document: Json, *, strict: bool) -> bool:
        expression = parse_expression(document)
        bound = bind(expression, self._schema)
        asked = Question(self._schema, self._spec, document, expression, bound, [], *self._documents)
        theirs = self._table.projected(document, strict=strict)
        ours = to_json(project(expression, self._schema, self._spec, strict=strict))
        if isinstance(ours, bool) or isinstance(theirs, bool):
            return bool(ours == theirs)
        return bool(ours == rewritten(theirs, asked.partition_schema())) or agreed.on_projection(asked)
