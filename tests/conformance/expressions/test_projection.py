"""Filters in JSON and their projections: the same questions."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.engine.expressions.expression_json import parse_expression, to_json
from app.engine.expressions.projection import project
from tests.conformance.expressions import agreed_differences as agreed
from tests.conformance.expressions.columns import (
    WITHOUT_BINARY,
    WITHOUT_NANOSECONDS,
    Question,
    questions,
    rewritten,
)
from tests.conformance.expressions.reference import Reference

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
    assume(not agreed.on_nullness(asked))
    # It forgets that with these the lowest numbers wrap around to the highest.
    assume(not transforms & {"truncate[3]", "truncate[10]"})

    theirs = asked.table(reference).projected(asked.document, strict=strict)

    ours = to_json(project(asked.expression, asked.schema, asked.spec, strict=strict))
    assert ours == rewritten(theirs, asked.partition_schema())
