"""Rows, partitions, manifests and metrics: the same answers, but where a difference is agreed on.

Where the two differ we are the careful ones, or know more: see `agreed_differences`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.engine.expressions.evaluation import partition_test
from app.engine.expressions.expression_json import to_json
from app.engine.expressions.metrics_evaluation import metrics_test, strict_metrics_test
from app.engine.expressions.residuals import residual_function
from app.engine.expressions.summary_evaluation import summaries_test
from tests.builders.filters import project, row_test
from tests.conformance.expressions import agreed_differences as agreed
from tests.conformance.expressions.columns import ORDINARY, Question, questions, rewritten, row_json
from tests.conformance.expressions.reference import Reference, Refused
from tests.strategies.data_files import data_files, manifests, partition_kinds, partition_of

pytestmark = pytest.mark.spark


def answer(question: Callable[[], Any]) -> Any:
    """Ask the reference; that it fails is an answer too."""
    try:
        return question()
    except Refused as refusal:
        return refusal


@given(asked=questions())
def test_the_same_rows_match(reference: Reference, asked: Question) -> None:
    table, test = asked.table(reference), row_test(asked.bound)
    for row in asked.rows:
        theirs = table.row_matches(asked.document, row_json(row, asked.schema.fields))

        ours = test(row)
        assert ours is theirs or agreed.on_row(asked, row, ours=ours, theirs=theirs)


@given(asked=questions(), strict=st.booleans())
def test_the_same_partitions_match(reference: Reference, asked: Question, strict: bool) -> None:
    assume(not agreed.on_projection(asked))
    table = asked.table(reference)
    test = partition_test(project(asked.expression, asked.schema, asked.spec, strict=strict), strict=strict)
    for row in asked.rows:
        partition, row_document = (
            partition_of(row, asked.spec, asked.schema),
            row_json(row, asked.schema.fields),
        )
        theirs = answer(partial(table.partition_matches, asked.document, row_document, strict=strict))

        if isinstance(theirs, Refused):
            assert agreed.on_refusal(asked, theirs)
        else:
            ours = test(partition)
            assert ours is theirs or agreed.on_partition(asked, partition, ours=ours, theirs=theirs)


@given(asked=questions())
def test_the_same_question_is_left(reference: Reference, asked: Question) -> None:
    assume(not agreed.on_projection(asked))
    table = asked.table(reference)
    residual_of = residual_function(asked.expression, asked.spec, asked.schema)
    for row in asked.rows:
        partition, row_document = (
            partition_of(row, asked.spec, asked.schema),
            row_json(row, asked.schema.fields),
        )
        theirs = answer(partial(table.residual, asked.document, row_document))

        if isinstance(theirs, Refused):
            assert agreed.on_refusal(asked, theirs)
        else:
            ours = rewritten(to_json(residual_of(partition)), asked.schema)
            assert ours == rewritten(theirs, asked.schema) or agreed.on_residual(asked, partition)


@given(asked=questions(), data=st.data())
def test_the_same_manifests_may_match(reference: Reference, asked: Question, data: st.DataObject) -> None:
    assume(not agreed.on_projection(asked))
    partitions = [partition_of(row, asked.spec, asked.schema) for row in asked.rows]
    manifest = data.draw(manifests(partitions, partition_kinds(asked.spec, asked.schema)), "manifest")

    theirs = answer(lambda: asked.table(reference).manifest_may_match(asked.document, manifest))

    if isinstance(theirs, Refused):
        assert agreed.on_refusal(asked, theirs)
    else:
        ours = summaries_test(project(asked.expression, asked.schema, asked.spec))(manifest)
        assert ours is theirs or agreed.on_manifest(asked, manifest, ours=ours)


@given(asked=questions(), data=st.data())
def test_the_same_files_may_match(reference: Reference, asked: Question, data: st.DataObject) -> None:
    assume(not agreed.on_nullness(asked))
    file = data.draw(data_files(asked.rows, asked.schema, early=False), "file")

    theirs = asked.table(reference).metrics_match(asked.document, file, strict=False)

    ours = metrics_test(asked.bound)(file)
    assert ours is theirs or agreed.on_metrics(asked, file, ours=ours)


@given(asked=questions(), data=st.data())
def test_the_same_files_match_as_a_whole(reference: Reference, asked: Question, data: st.DataObject) -> None:
    assume(not agreed.on_nullness(asked))
    file = data.draw(data_files(asked.rows, asked.schema, early=False), "file")

    theirs = asked.table(reference).metrics_match(asked.document, file, strict=True)

    ours = strict_metrics_test(asked.bound)(file)
    assert ours is theirs or agreed.on_strict_metrics(asked, file, ours=ours)


@given(asked=questions(depth=3, kinds=[ORDINARY]), data=st.data(), strict=st.booleans())
def test_filters_of_many_predicates_agree(
    reference: Reference, asked: Question, data: st.DataObject, strict: bool
) -> None:
    assume(not agreed.on_any_predicate(asked) and not agreed.on_nullness(asked))
    file = data.draw(data_files(asked.rows, asked.schema, with_gaps=False, early=False), "file")

    theirs = asked.table(reference).metrics_match(asked.document, file, strict=strict)

    assert (strict_metrics_test if strict else metrics_test)(asked.bound)(file) is theirs
