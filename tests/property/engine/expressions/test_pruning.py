"""The laws of pruning, against brute force on rows: what may match is never passed over, what is certain is so.

They hold whatever an engine thinks of -0.0 and 0.0, and in partitions also of NaN; only metrics and summaries take NaN
for unordered, as the reference does.
"""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import event, given
from hypothesis import strategies as st

from app.engine.expressions.binding import bind
from app.engine.expressions.evaluation import partition_test, row_test
from app.engine.expressions.expression_json import parse_expression, to_json
from app.engine.expressions.expressions import BoundExpression, Expression
from app.engine.expressions.metrics_evaluation import metrics_test, strict_metrics_test
from app.engine.expressions.projection import project
from app.engine.expressions.residuals import residual_function
from app.engine.expressions.summary_evaluation import summaries_test
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema
from tests.property.engine.expressions.brute_force import matches
from tests.strategies.data_files import Row, by_partition, data_files, manifests, partition_kinds
from tests.strategies.filters import filtered_schemas, filtered_specs, filters, rows


class Question(NamedTuple):
    """A filter on a table of a few rows, and whether its engine compares in total order."""

    schema: Schema
    spec: PartitionSpec
    expression: Expression
    bound: BoundExpression
    rows: list[Row]
    by_total_order: bool

    def matched(self, rows: list[Row]) -> list[Row]:
        return [row for row in rows if matches(self.bound, row, by_total_order=self.by_total_order)]


@st.composite
def questions(draw: st.DrawFn, *, total_with_nan: bool) -> Question:
    document = draw(filtered_schemas())
    schema = Schema.from_object(document)
    spec = PartitionSpec.from_object(draw(filtered_specs(document)))
    expression = parse_expression(draw(filters(document)))
    by_total_order = draw(st.booleans())
    held = rows(schema, with_nan=total_with_nan or not by_total_order)
    return Question(
        schema,
        spec,
        expression,
        bind(expression, schema),
        draw(st.lists(held, min_size=1, max_size=6)),
        by_total_order,
    )


@given(questions(total_with_nan=False))
def test_a_row_matches_as_it_does_by_hand(asked: Question) -> None:
    for row in asked.rows:
        assert row_test(asked.bound)(row) is matches(asked.bound, row)


@given(questions(total_with_nan=False), st.data())
def test_a_file_with_a_matching_row_is_never_pruned_by_its_metrics(
    asked: Question, data: st.DataObject
) -> None:
    file = data.draw(data_files(asked.rows, asked.schema), "file")
    matched = asked.matched(asked.rows)

    may, all_do = metrics_test(asked.bound)(file), strict_metrics_test(asked.bound)(file)

    event(f"may match: {may}, all match: {all_do}")
    assert may or not matched
    assert not all_do or len(matched) == len(asked.rows)


@given(questions(total_with_nan=True))
def test_a_partition_with_a_matching_row_is_never_pruned(asked: Question) -> None:
    inclusive = partition_test(project(asked.expression, asked.schema, asked.spec))
    strict = partition_test(project(asked.expression, asked.schema, asked.spec, strict=True), strict=True)

    for partition, some in by_partition(asked.rows, asked.spec, asked.schema):
        matched = asked.matched(some)
        may, all_do = inclusive(partition), strict(partition)
        event(f"may match: {may}, all match: {all_do}")
        assert may or not matched
        assert not all_do or len(matched) == len(some)


@given(questions(total_with_nan=False), st.data())
def test_a_manifest_with_a_matching_row_is_never_pruned(asked: Question, data: st.DataObject) -> None:
    partitions = [partition for partition, _ in by_partition(asked.rows, asked.spec, asked.schema)]
    manifest = data.draw(manifests(partitions, partition_kinds(asked.spec, asked.schema)), "manifest")

    may = summaries_test(project(asked.expression, asked.schema, asked.spec))(manifest)

    event(f"may match: {may}")
    assert may or not asked.matched(asked.rows)


@given(questions(total_with_nan=True))
def test_a_row_matches_the_residual_as_it_matches_the_filter(asked: Question) -> None:
    residual_of = residual_function(asked.expression, asked.spec, asked.schema)

    for partition, some in by_partition(asked.rows, asked.spec, asked.schema):
        residual = to_json(residual_of(partition))
        event(f"residual: {residual if isinstance(residual, bool) else 'a question'}")
        left = asked._replace(bound=bind(parse_expression(residual), asked.schema))
        # By position: NaN is not equal to itself.
        assert [id(row) for row in left.matched(some)] == [id(row) for row in asked.matched(some)]
