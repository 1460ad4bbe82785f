from __future__ import annotations

from typing import Any

import pytest

from app.engine.expressions.expression_json import parse_expression
from app.engine.expressions.expressions import ALWAYS_FALSE, ALWAYS_TRUE, BoundExpression
from app.engine.expressions.summary_evaluation import summaries_test
from app.engine.model.files.manifests import PartitionSummary
from tests.builders.filtered_files import asked, manifest_of, schema_of, spec_of, summary_of
from tests.builders.filters import project


def projected(kind: str, document: Any) -> BoundExpression:
    return project(parse_expression(document), schema_of(c=kind), spec_of((1, "identity")))


NUMBERS = summary_of("double", 1.0, 2.0, nan=False)
WITH_NULL = summary_of("double", 1.0, 2.0, null=True, nan=False)
WITH_NAN = summary_of("double", 1.0, 2.0, nan=True)
MAYBE_NAN = summary_of("double", 1.0, 2.0)
ONLY_NULL = summary_of("double", null=True, nan=False)
ONLY_NAN = summary_of("double", nan=True)
NULL_AND_NAN = summary_of("double", null=True, nan=True)
NULL_AND_MAYBE_NAN = summary_of("double", null=True)
NOTHING = summary_of("double")


@pytest.mark.parametrize(
    ("operation", "kept", "pruned"),
    [
        (
            "is-null",
            [WITH_NULL, ONLY_NULL, NULL_AND_NAN, NULL_AND_MAYBE_NAN],
            [NUMBERS, WITH_NAN, ONLY_NAN, NOTHING],
        ),
        ("not-null", [NUMBERS, WITH_NULL, ONLY_NAN, NULL_AND_NAN, NULL_AND_MAYBE_NAN, NOTHING], [ONLY_NULL]),
        ("is-nan", [WITH_NAN, MAYBE_NAN, ONLY_NAN, NULL_AND_NAN, NULL_AND_MAYBE_NAN], [NUMBERS, ONLY_NULL]),
        ("not-nan", [NUMBERS, WITH_NAN, ONLY_NULL, NULL_AND_NAN, NOTHING], [ONLY_NAN]),
    ],
)
def test_null_and_nan_are_asked_of_what_summaries_contain(
    operation: str, kept: list[PartitionSummary], pruned: list[PartitionSummary]
) -> None:
    test = summaries_test(projected("double", asked(operation)))

    assert all(test(manifest_of(summary)) for summary in kept)
    assert not any(test(manifest_of(summary)) for summary in pruned)


@pytest.mark.parametrize(
    ("operation", "literal", "kept", "pruned"),
    [
        ("lt", 1.5, [NUMBERS, WITH_NULL, WITH_NAN, MAYBE_NAN], [ONLY_NULL, ONLY_NAN, NULL_AND_NAN]),
        ("lt", 1.0, [], [NUMBERS, WITH_NULL, WITH_NAN, MAYBE_NAN, ONLY_NULL]),
        ("gt", 1.5, [NUMBERS, WITH_NAN, ONLY_NAN, NULL_AND_NAN, NULL_AND_MAYBE_NAN, NOTHING], [ONLY_NULL]),
        ("gt", 5.0, [WITH_NAN, ONLY_NAN, NOTHING], [NUMBERS, WITH_NULL, MAYBE_NAN, ONLY_NULL]),
        ("eq", 5.0, [], [NUMBERS, WITH_NAN, ONLY_NULL, ONLY_NAN]),
        ("eq", 1.5, [NUMBERS, NOTHING], [ONLY_NULL, ONLY_NAN, NULL_AND_MAYBE_NAN]),
        ("not-eq", 5.0, [NUMBERS, WITH_NAN, ONLY_NULL, ONLY_NAN], []),
    ],
)
def test_comparisons_are_asked_of_bounds(
    operation: str, literal: float, kept: list[PartitionSummary], pruned: list[PartitionSummary]
) -> None:
    test = summaries_test(projected("double", asked(operation, literal)))

    assert all(test(manifest_of(summary)) for summary in kept)
    assert not any(test(manifest_of(summary)) for summary in pruned)


def test_only_one_value() -> None:
    not_five = summaries_test(projected("int", asked("not-eq", 5)))

    assert not not_five(manifest_of(summary_of("int", 5, 5)))
    assert not_five(manifest_of(summary_of("int", 5, 5, null=True)))
    assert not_five(manifest_of(summary_of("int", 5, 6)))


def test_what_is_missing_says_nothing() -> None:
    test = summaries_test(projected("int", asked("eq", 5)))

    assert test(manifest_of(None))
    assert test(manifest_of())
    assert not test(manifest_of(summary_of("int", 6, 7)))
    assert test(manifest_of(summary_of("int", 5, None)))


def test_constants() -> None:
    assert summaries_test(ALWAYS_TRUE)(manifest_of(NUMBERS))
    assert not summaries_test(ALWAYS_FALSE)(manifest_of(None))


def test_summary_is_found_by_its_position() -> None:
    expression = parse_expression(asked("eq", 5, of="b"))
    test = summaries_test(
        project(expression, schema_of(a="int", b="int"), spec_of((1, "identity"), (2, "identity")))
    )

    assert test(manifest_of(summary_of("int", 7, 9), summary_of("int", 4, 6)))
    assert not test(manifest_of(summary_of("int", 4, 6), summary_of("int", 7, 9)))


def test_transform_of_an_identity_field_is_asked_of_its_bounds() -> None:
    test = summaries_test(projected("int", asked("eq", 10, through="truncate[10]")))
    bucket = summaries_test(projected("int", asked("eq", 1, through="bucket[4]")))
    apart = summaries_test(projected("int", asked("not-eq", 1, through="bucket[4]")))

    assert test(manifest_of(summary_of("int", 12, 14)))
    assert not test(manifest_of(summary_of("int", 20, 24)))
    assert bucket(manifest_of(summary_of("int", 12, 14)))
    assert not bucket(manifest_of(summary_of("int", null=True)))
    assert apart(manifest_of(summary_of("int", 12, 14)))
