"""Partitions are counted over all specs, whose fields are put together by their ids."""

from __future__ import annotations

import pytest

from app.engine.model.files.entry_filters import EntryFacts
from app.engine.model.files.manifests import EntryStatus, FileContent
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.partition_statistics.counts import CountedPartitions, unified_fields
from tests.unit.engine.documents import part, spec_json, table


def test_fields_mean_the_same_whatever_the_case_of_their_transforms() -> None:
    specs = [
        spec_json(part("category", 2, 1000, transform), spec_id=number)
        for number, transform in enumerate(("bucket[4]", "BUCKET[4]"))
    ]

    found = unified_fields(table(partition_specs=specs))

    assert [(field.field_id, str(field.kind)) for field in found] == [(1000, "int")]


def test_partition_values_that_do_not_fit_their_spec_are_refused() -> None:
    metadata = table()
    counts = CountedPartitions(metadata, unified_fields(metadata))
    entry = EntryFacts(
        EntryStatus.ADDED,
        SnapshotId(1),
        1,
        1,
        FileContent.DATA,
        Location("f"),
        "parquet",
        1,
        1,
        None,
        ("a", 2),
    )

    with pytest.raises(ValueError, match="f has 2 partition values, and partition spec 0 has 1"):
        counts.note(SpecId(0), [entry])
    with pytest.raises(ValueError, match="a manifest has partition spec 7, which the table has not"):
        counts.note(SpecId(7), [])
    assert counts.in_order() == []
