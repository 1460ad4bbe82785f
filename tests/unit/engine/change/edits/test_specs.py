"""Edits of partition specs: ids, reuse, the default, what may go."""

from __future__ import annotations

import pytest

from app.engine.change.apply import apply_to_new
from app.engine.model.table_metadata import TableMetadata
from app.errors import InvalidUpdate
from tests.unit.engine.documents import Json, applied, committed, part, spec_json, table, updates_of

BASE = table()
SET_LAST: Json = {"action": "set-default-spec", "spec-id": -1}
BUCKETS = part("id_bucket", 1, 1001, "bucket[4]")


def add(*fields: Json, **more: object) -> Json:
    return {"action": "add-spec", "spec": {"fields": list(fields)} | more}


def refusal(base: TableMetadata, *updates: Json) -> str:
    with pytest.raises(InvalidUpdate) as caught:
        applied(base, *updates)
    return str(caught.value)


def test_new_spec_gets_the_next_id_whatever_was_sent() -> None:
    after = committed(BASE, add(BUCKETS, **{"spec-id": 77}), SET_LAST)

    assert [item.spec_id for item in after.partition_specs] == [0, 1]
    assert after.default_spec_id == 1
    assert after.last_partition_id == 1001


def test_new_spec_is_not_the_default_by_itself() -> None:
    assert committed(BASE, add(BUCKETS)).default_spec_id == 0


def test_equal_spec_is_found_whatever_its_field_ids_and_nothing_changes() -> None:
    draft = applied(BASE, add(part("category", 2, 1234, "IDENTITY")))

    assert not draft.has_changes
    assert draft.last_added_spec_id == 0
    assert draft.last_partition_id == 1000


def test_reverting_to_an_old_spec_takes_its_id_again() -> None:
    bucketed = committed(BASE, add(BUCKETS), SET_LAST)

    after = committed(bucketed, add(part("category", 2, 1000)), SET_LAST)

    assert len(after.partition_specs) == 2
    assert after.default_spec_id == 0
    assert after.last_partition_id == 1001


def test_last_partition_id_never_falls() -> None:
    base = table(last_partition_id=1500)

    assert committed(base, add(BUCKETS), SET_LAST).last_partition_id == 1500


def test_unpartitioned_spec_leaves_the_last_partition_id() -> None:
    assert committed(BASE, add(), SET_LAST).last_partition_id == 1000


def test_table_that_never_had_a_partition_field_starts_at_999() -> None:
    base = table(1, partition_specs=[spec_json()], last_partition_id=0)

    assert committed(base, add()).last_partition_id == 999


def test_missing_field_ids_go_on_from_the_last_of_the_table() -> None:
    after = committed(
        BASE,
        add(part("a", 1, transform="bucket[2]"), part("b", 2, transform="truncate[2]")),
        add(part("c", 1)),
    )

    assert [[field.field_id for field in spec.fields] for spec in after.partition_specs[1:]] == [
        [1001, 1002],
        [1003],
    ]
    assert after.last_partition_id == 1003


def test_field_without_id_keeps_that_of_an_earlier_spec() -> None:
    bucketed = committed(BASE, add(BUCKETS), SET_LAST)

    after = committed(
        bucketed, add(part("again", 1, transform="bucket[4]"), part("category", 2), part("c", 1))
    )

    assert [field.field_id for field in after.partition_specs[2].fields] == [1001, 1000, 1002]


def test_version_1_counts_the_fields_of_each_spec_from_1000() -> None:
    after = committed(table(1), add(part("a", 1, transform="bucket[2]"), part("b", 1)))

    assert [field.field_id for field in after.partition_specs[1].fields] == [1000, 1001]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([part("x", 99)], "Cannot find source column for partition field: x (source-id 99)"),
        ([part("x", 2, transform="day")], "Invalid source type string for transform day"),
        ([part("id", 2)], "Cannot create identity partition sourced from different field in schema: id"),
        ([part("x", 1), part("x", 2)], "Cannot use partition name more than once: x"),
    ],
)
def test_spec_that_cannot_be_is_refused(fields: list[Json], message: str) -> None:
    assert message in refusal(BASE, add(*fields))


def test_field_id_means_one_field() -> None:
    bucketed = committed(BASE, add(BUCKETS), SET_LAST)

    assert refusal(bucketed, add(part("other", 1, 1001, "bucket[8]"))) == (
        "Cannot add partition field other: its id 1001 is that of id_bucket (bucket[4] of column 1); "
        "leave ids out to have them given"
    )
    assert "its id 1000 is that of category" in refusal(bucketed, add(part("gone", 1, 1000, "void")))
    assert "its id 1002 is that of a " in refusal(bucketed, add(part("a", 1, 1002)), add(part("b", 2, 1002)))


def test_fields_of_one_column_share_an_id_if_one_is_void() -> None:
    bucketed = committed(BASE, add(BUCKETS), SET_LAST)

    after = committed(
        bucketed,
        add(part("again", 1, 1001, "BUCKET[4]"), part("c", 2, 1000)),
        add(part("gone", 1, 1001, "void"), part("d", 2, 1000)),
    )

    assert len(after.partition_specs) == 4


def test_ids_that_are_left_out_are_never_those_of_other_fields_of_the_spec() -> None:
    of_version_1 = committed(table(1), add(part("a", 1, transform="bucket[2]")))
    base = committed(of_version_1, {"action": "upgrade-format-version", "format-version": 2})

    both = committed(base, add(part("a", 1, transform="bucket[2]"), part("category", 2)))
    mixed = committed(base, add(part("a", 1), part("b", 2, 1001, "truncate[2]"), part("c", 2, 1000)))

    assert [field.field_id for field in both.partition_specs[2].fields] == [1000, 1001]
    assert [field.field_id for field in mixed.partition_specs[2].fields] == [1002, 1001, 1000]


def test_field_id_that_was_void_first_means_one_field() -> None:
    """Readers take a void field for whatever the others of its column and id are."""
    void = table(partition_specs=[spec_json(part("gone", 1, 1000, "VOID"))])
    bucketed = committed(void, add(part("id_bucket", 1, 1000, "bucket[4]")))

    assert "its id 1000 is that of id_bucket (bucket[4]" in refusal(
        bucketed, add(part("id_trunc", 1, 1000, "truncate[4]"))
    )
    assert "its id 1000 is that of gone (VOID" in refusal(void, add(part("category", 2, 1000)))
    assert len(committed(bucketed, add(part("x", 1, 1000, "Bucket[4]"))).partition_specs) == 3


def test_field_without_id_is_found_whatever_the_case_of_its_transform() -> None:
    base = table(partition_specs=[spec_json(part("id_bucket", 1, 1000, "BUCKET[4]"))])

    after = committed(base, add(part("again", 1, transform="bucket[4]")))

    assert [field.field_id for field in after.partition_specs[1].fields] == [1000]


def test_field_id_that_meant_two_fields_in_version_1_goes_on_with_either() -> None:
    of_version_1 = committed(table(1), add(part("a", 1, transform="bucket[2]"), part("b", 2)))
    assert [[field.field_id for field in spec.fields] for spec in of_version_1.partition_specs] == [
        [1000],
        [1000, 1001],
    ]
    base = committed(of_version_1, {"action": "upgrade-format-version", "format-version": 2})

    for field in (part("x", 1, 1000, "bucket[2]"), part("y", 2, 1000), part("z", 2, 1001)):
        assert len(committed(base, add(field, part("w", 1, 1002))).partition_specs) == 3
    assert "its id 1000 is that of " in refusal(base, add(part("x", 1, 1000)))


def test_v1_needs_field_ids_in_sequence() -> None:
    assert "v1 tables need field ids in sequence from 1000" in refusal(table(1), add(BUCKETS))


def test_setting_the_default_spec_again_changes_nothing() -> None:
    assert not applied(BASE, {"action": "set-default-spec", "spec-id": 0}).has_changes


def test_last_added_spec_needs_one_that_was_added() -> None:
    assert refusal(BASE, SET_LAST) == "Cannot set last added spec: no spec has been added"


def test_specs_that_nothing_needs_go_and_unknown_ones_are_passed_over() -> None:
    bucketed = committed(BASE, add(BUCKETS), SET_LAST)
    remove: Json = {"action": "remove-partition-specs", "spec-ids": [0, 42]}

    after = committed(bucketed, remove)

    assert [item.spec_id for item in after.partition_specs] == [1]
    assert after.last_partition_id == 1001
    assert not applied(after, remove).has_changes


def test_default_spec_stays() -> None:
    assert refusal(BASE, {"action": "remove-partition-specs", "spec-ids": [7, 0]}) == (
        "Cannot remove the default partition spec"
    )


def test_spec_needs_a_current_schema() -> None:
    with pytest.raises(InvalidUpdate, match=r"^The table has no current schema yet"):
        apply_to_new(updates_of(add(BUCKETS)), 0)


def test_there_is_no_spec_id_after_the_last() -> None:
    base = table(partition_specs=[spec_json(), spec_json(part("a", 1, 1000), spec_id=2**31 - 1)])

    assert refusal(base, add(BUCKETS)).startswith("Cannot number another partition spec")


def test_half_of_all_partition_field_ids_may_be_chosen_and_more_where_they_are_taken() -> None:
    def new(field_id: int) -> Json:
        return add(part("id_bucket", 1, field_id, "bucket[4]"))

    assert committed(BASE, new(2**30)).last_partition_id == 2**30
    assert refusal(BASE, new(2**30 + 1)) == (
        "Cannot add a partition field with id 1073741825: it would leave too few ids for others; the highest allowed "
        "is 1073741824"
    )
    beyond = table(last_partition_id=2**30 + 7)
    assert committed(beyond, new(2**30 + 8)).last_partition_id == 2**30 + 8
    assert refusal(beyond, new(2**30 + 9)).endswith("the highest allowed is 1073741832")
