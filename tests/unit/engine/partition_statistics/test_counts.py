"""Partition fields of all specs, put together by their ids."""

from __future__ import annotations

from app.engine.partition_statistics.counts import unified_fields
from tests.unit.engine.documents import part, spec_json, table


def test_fields_mean_the_same_whatever_the_case_of_their_transforms() -> None:
    specs = [
        spec_json(part("category", 2, 1000, transform), spec_id=number)
        for number, transform in enumerate(("bucket[4]", "BUCKET[4]"))
    ]

    found = unified_fields(table(partition_specs=specs))

    assert [(field.field_id, str(field.kind)) for field in found] == [(1000, "int")]
