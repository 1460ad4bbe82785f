from __future__ import annotations

from uuid import UUID

import pytest

from app.engine.model.files.partition_values import PartitionValues, schema_with_sources
from app.engine.model.ids import SpecId
from tests.unit.engine.documents import column, part, schema_json, spec_json, table
from tests.unit.engine.effort import calls_in

OLD = schema_json(column(1, "at", "timestamp"), column(2, "amount", "decimal(9, 2)"))
NEW = schema_json(column(1, "at", "timestamp"), schema_id=1)
SPEC = spec_json(part("day", 1, 1000, "day"), part("amount", 2, 1001))
DROPPED = table(
    schemas=[OLD, NEW], current_schema_id=1, partition_specs=[SPEC, spec_json(spec_id=1)], default_spec_id=1
)


def test_values_are_shown_by_field_name_also_of_a_dropped_column() -> None:
    values = PartitionValues(DROPPED)

    assert values.shown(SpecId(0), (19_700, None)) == {"day": "2023-12-09", "amount": None}
    assert values.shown(SpecId(1), ()) == {}
    assert schema_with_sources(DROPPED, DROPPED.partition_specs[0]).schema_id == 0


def test_schemas_are_looked_through_once_for_all_files_of_a_spec() -> None:
    def effort(count: int) -> int:
        schemas = [OLD, *(schema_json(column(1, "at", "timestamp"), schema_id=at + 1) for at in range(count))]
        metadata = table(
            schemas=schemas,
            current_schema_id=count,
            partition_specs=[SPEC, spec_json(spec_id=1)],
            default_spec_id=1,
        )
        spec = metadata.partition_specs[0]
        assert schema_with_sources(metadata, spec).schema_id == 0
        return calls_in(lambda: [schema_with_sources(metadata, spec) for _ in range(100)])

    assert effort(100) == effort(2)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (7, 7),
        ("x", "x"),
        (True, True),
        (None, None),
        (1.5, 1.5),
        (float("nan"), "nan"),
        (b"\x01\xff", "01FF"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_values_of_a_spec_that_is_not_known_are_shown_by_place(value: object, shown: object) -> None:
    assert PartitionValues(DROPPED).shown(SpecId(9), (value,)) == {"field_0": shown}
