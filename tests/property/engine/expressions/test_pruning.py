"""The laws of pruning, against brute force on rows: what may match is never passed over, what is certain is so.

They hold whatever an engine thinks of -0.0, 0.0 and NaN. Only where a writer did not count NaN, its bounds are taken to
speak of all values.
"""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import event, given
from hypothesis import strategies as st

from app.engine.expressions.binding import bind
from app.engine.expressions.evaluation import partition_test
from app.engine.expressions.expression_json import parse_expression, to_json
from app.engine.expressions.metrics_evaluation import metrics_test, strict_metrics_test
from app.engine.expressions.residuals import residual_function
from app.engine.expressions.summary_evaluation import summaries_test
from app.engine.expressions.value_ranges import value_ranges
from app.engine.model.data_types.values import is_nan
from app.engine.model.files.manifests import DataFile, ManifestFile
from app.engine.model.ids import FieldId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.schema import Schema
from tests.builders.filters import project, row_test
from tests.property.engine.expressions.brute_force import holds_nan, matches
from tests.strategies.data_files import (
    Row,
    by_partition,
    data_files,
    manifests,
    partition_kinds,
    value_in,
)
from tests.strategies.filters import filtered_schemas, filtered_specs, filters, rows, spelled_otherwise
from tests.strategies.json_values import Json


class Question(NamedTuple):
    """A filter on a table of a few rows, and whether its engine compares in total order."""

    schema: Schema
    spec: PartitionSpec
    document: Json
    spelled: Json
    rows: list[Row]
    by_total_order: bool
    early: bool

    def __repr__(self) -> str:
        order = "total order" if self.by_total_order else "numbers"
        return f"{self.spelled} of {self.rows} in {self.schema.to_object()} by {self.spec.to_object()} as {order}"

    def matched(self, rows: list[Row]) -> list[Row]:
        return [
            row
            for row in rows
            if matches(self.document, self.schema, row, by_total_order=self.by_total_order)
        ]

    def without_uncounted_nan(self, file: DataFile) -> Question:
        """Let NaN be no number to the engine if the file does not say how many of them it has."""
        counts = file.nan_value_counts or {}
        uncounted = any(holds_nan(row, self.schema.fields) - counts.keys() for row in self.rows)
        return self._replace(by_total_order=self.by_total_order and not uncounted)

    def without_unmentioned_nan(self, manifest: ManifestFile) -> Question:
        """Let NaN be no number to the engine if a summary does not say whether there is any."""
        unmentioned = any(summary.contains_nan is None for summary in manifest.partitions or ())
        return self._replace(by_total_order=self.by_total_order and not unmentioned)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    schema_document = draw(filtered_schemas())
    schema = Schema.from_object(schema_document)
    spec = PartitionSpec.from_object(draw(filtered_specs(schema_document)))
    document = draw(filters(schema_document, with_structs=True))
    return Question(
        schema,
        spec,
        document,
        draw(spelled_otherwise(document, schema)),
        draw(st.lists(rows(schema), min_size=1, max_size=6)),
        draw(st.booleans()),
        draw(st.booleans()),
    )


@given(questions())
def test_a_row_matches_as_it_does_by_hand(asked: Question) -> None:
    test = row_test(bind(parse_expression(asked.spelled), asked.schema))

    for row in asked.rows:
        assert test(row) is matches(asked.document, asked.schema, row)


@given(questions(), st.data())
def test_a_file_with_a_matching_row_is_never_pruned_by_its_metrics(
    asked: Question, data: st.DataObject
) -> None:
    file = data.draw(data_files(asked.rows, asked.schema), "file")
    bound = bind(parse_expression(asked.spelled), asked.schema)
    matched = asked.without_uncounted_nan(file).matched(asked.rows)

    may, all_do = metrics_test(bound)(file), strict_metrics_test(bound)(file)

    event(f"may match: {may}, all match: {all_do}")
    assert may or not matched
    assert not all_do or len(matched) == len(asked.rows)


@given(questions())
def test_a_partition_with_a_matching_row_is_never_pruned(asked: Question) -> None:
    expression = parse_expression(asked.spelled)
    inclusive = partition_test(project(expression, asked.schema, asked.spec))
    strict = partition_test(project(expression, asked.schema, asked.spec, strict=True), strict=True)

    for partition, some in by_partition(asked.rows, asked.spec, asked.schema, early=asked.early):
        matched = asked.matched(some)
        may, all_do = inclusive(partition), strict(partition)
        event(f"may match: {may}, all match: {all_do}")
        assert may or not matched
        assert not all_do or len(matched) == len(some)


@given(questions(), st.data())
def test_a_manifest_with_a_matching_row_is_never_pruned(asked: Question, data: st.DataObject) -> None:
    groups = by_partition(asked.rows, asked.spec, asked.schema, early=asked.early)
    partitions = [partition for partition, _ in groups]
    manifest = data.draw(manifests(partitions, partition_kinds(asked.spec, asked.schema)), "manifest")
    matched = asked.without_unmentioned_nan(manifest).matched(asked.rows)

    may = summaries_test(project(parse_expression(asked.spelled), asked.schema, asked.spec))(manifest)

    event(f"may match: {may}")
    assert may or not matched


@given(questions())
def test_a_row_matches_the_residual_as_it_matches_the_filter(asked: Question) -> None:
    residual_of = residual_function(parse_expression(asked.spelled), asked.spec, asked.schema)

    for partition, some in by_partition(asked.rows, asked.spec, asked.schema, early=asked.early):
        left = to_json(residual_of(partition))
        event(f"residual: {left if isinstance(left, bool) else 'a question'}")
        # By identity: NaN is not equal to itself.
        kept = asked._replace(document=left).matched(some)
        assert [id(row) for row in kept] == [id(row) for row in asked.matched(some)]


@given(questions())
def test_a_matching_row_has_a_value_in_every_range(asked: Question) -> None:
    ranges = value_ranges(bind(parse_expression(asked.spelled), asked.schema))

    event(f"ranges: {len(ranges)}")
    for row in asked.matched(asked.rows):
        for wanted in ranges:
            value = value_in(row, asked.schema.columns[FieldId(wanted.field_id)], asked.schema)
            assert value is not None
            assert not is_nan(value)
            assert wanted.lowest is None or wanted.lowest <= value
            assert wanted.highest is None or value <= wanted.highest
