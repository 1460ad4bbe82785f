"""Whether a manifest was surely written with another partition spec: doubt says no."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from app.engine.model.files.entry_filters import is_surely_of_another_spec
from app.engine.model.files.manifests import ManifestEntry
from app.engine.model.ids import FieldId, SpecId
from app.engine.model.partition_spec import PartitionField, PartitionSpec


@dataclass(frozen=True)
class Written:
    """Entries of a manifest: the field ids in its header, and those of the values in its partitions."""

    partition_field_ids: tuple[int, ...] | None = None
    partition_value_ids: frozenset[int] | None = None

    def __iter__(self) -> Iterator[ManifestEntry]:
        return iter(())


def spec(*transforms: str) -> PartitionSpec:
    """Return a spec of fields 1001, 1002 and so on."""
    fields = (
        PartitionField(
            name=f"part{number}", transform=transform, source_id=FieldId(1), field_id=FieldId(number)
        )
        for number, transform in enumerate(transforms, start=1001)
    )
    return PartitionSpec(spec_id=SpecId(1), fields=tuple(fields))


@pytest.mark.parametrize(
    ("header", "values", "is_another"),
    [
        ((1001, 1002), {1001, 1002}, False),
        ((1002, 1001), {1001, 1002}, False),
        ((1000,), {1000}, True),
        ((1001,), {1001}, True),
        ((1001, 1002, 1003), {1001, 1002, 1003}, True),
        ((), set(), True),
        # Writers whose header is wrong, as where it has no ids and they are counted from 1000.
        ((1000, 1001), {1001, 1002}, False),
        ((), {1001, 1002}, False),
        # Writers that give the values no ids, or other ones, under a header that is right.
        ((1001, 1002), {1000, 1001}, False),
        ((1000,), None, False),
        (None, {1000}, False),
        (None, None, False),
    ],
)
def test_header_and_values_must_both_speak_against_the_spec(
    header: tuple[int, ...] | None, values: set[int] | None, is_another: bool
) -> None:
    written = Written(header, None if values is None else frozenset(values))

    assert is_surely_of_another_spec(written, spec("identity", "bucket[4]")) is is_another


@pytest.mark.parametrize("ids", [(1001, 1002), (1001,)])
def test_void_fields_may_be_left_out(ids: tuple[int, ...]) -> None:
    assert not is_surely_of_another_spec(Written(ids, frozenset(ids)), spec("identity", "void"))


def test_entries_that_say_nothing_of_their_spec() -> None:
    assert not is_surely_of_another_spec([], spec("identity"))
