"""Transforms: the same partition for every row."""

from __future__ import annotations

import pytest
from hypothesis import given

from app.engine.model.data_types.json_values import from_json_value
from tests.conformance.expressions.columns import Question, questions, row_json
from tests.conformance.expressions.reference import Reference
from tests.strategies.data_files import partition_kinds, partition_of

pytestmark = pytest.mark.spark


@given(asked=questions())
def test_a_row_is_in_the_same_partition(reference: Reference, asked: Question) -> None:
    table = asked.table(reference)
    kinds = partition_kinds(asked.spec, asked.schema)
    for row in asked.rows:
        theirs = table.partition_json(row_json(row, asked.schema.fields))

        values = [
            from_json_value(kind, theirs.get(str(field.field_id)))
            for field, kind in zip(asked.spec.fields, kinds, strict=True)
        ]
        ours = partition_of(row, asked.spec, asked.schema)

        # As text, because NaN is not equal to itself and -0.0 equal to 0.0.
        assert repr(ours) == repr(tuple(values))
