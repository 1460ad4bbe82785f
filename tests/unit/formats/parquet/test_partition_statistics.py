"""Partition statistics files: what no such file can hold is refused before memory is taken for it."""

from __future__ import annotations

import pytest

from app.engine.model.data_types.types import parse_primitive
from app.engine.model.ids import SpecId
from app.engine.partition_statistics.counts import PartitionCount, UnifiedField
from app.formats.parquet.partition_statistics import write_partition_statistics


def test_nulls_of_a_long_fixed_type_do_not_fill_the_memory() -> None:
    """Arrow takes two gigabytes for each of them."""
    counts = [PartitionCount(SpecId(0), (None, number)) for number in range(1_000)]
    kinds = {"f": parse_primitive("fixed[2147483647]"), "n": parse_primitive("int")}
    fields = [UnifiedField(1000 + place, name, kind) for place, (name, kind) in enumerate(kinds.items())]

    with pytest.raises(ValueError, match=r"1000 values of type fixed\[2147483647\] have more than"):
        write_partition_statistics(counts, fields, 2)
