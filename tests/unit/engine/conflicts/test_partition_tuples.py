from __future__ import annotations

from typing import Any

import pytest

from app.engine.conflicts.partition_tuples import load_spec, partition_tuple
from app.engine.model.ids import SpecId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.model.table_metadata import TableMetadata
from app.errors import InvalidRequest
from tests.builders.branches import UNPARTITIONED, Branch


def with_spec(*fields: tuple[str, str, int]) -> TableMetadata:
    """Return a table with a second spec of these names, transforms and columns."""
    metadata = Branch().metadata
    spec = {
        "spec-id": 1,
        "fields": [
            {"name": name, "transform": transform, "source-id": source, "field-id": 1001 + position}
            for position, (name, transform, source) in enumerate(fields)
        ],
    }
    return metadata.replace(partition_specs=(*metadata.partition_specs, PartitionSpec.from_object(spec)))


@pytest.mark.parametrize("value", [{"id_bucket": 3, "kind": "a"}, {"kind": "a", "id_bucket": 3}, [3, "a"]])
def test_by_name_and_in_order(value: Any) -> None:
    metadata = with_spec(("id_bucket", "bucket[8]", 1), ("kind", "identity", 2))

    assert partition_tuple(metadata, SpecId(1), value) == (1, (3, "a"))


def test_default_spec_and_no_spec() -> None:
    assert partition_tuple(Branch().metadata, None, [None]) == (0, (None,))
    assert partition_tuple(Branch(UNPARTITIONED).metadata, None, None) == (0, ())
    with pytest.raises(InvalidRequest, match=r"no partition spec 4, only \[0\]"):
        load_spec(Branch().metadata, SpecId(4))


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        (("x", "identity", 99), "x can only be null: its column is gone"),
        (("x", "wondrous", 1), "x can only be null: its column is gone"),
        (("x", "day", 2), "x can only be null: its column is gone"),
        (("x", "void", 1), "x can only be null$"),
        (("x", "identity", 1), "x: "),
    ],
)
def test_values_that_cannot_be(field: tuple[str, str, int], reason: str) -> None:
    metadata = with_spec(field)

    assert partition_tuple(metadata, SpecId(1), [None]) == (1, (None,))
    with pytest.raises(InvalidRequest, match=reason):
        partition_tuple(metadata, SpecId(1), ["text"])


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"id": 3}, r"has \[id\], the spec has \[kind\]"),
        (None, "has 0 values"),
        (["a", "b"], "has 2 values"),
    ],
)
def test_values_of_another_spec(value: Any, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        partition_tuple(Branch().metadata, SpecId(0), value)
