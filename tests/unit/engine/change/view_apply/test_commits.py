"""Commits to views: new versions, the current one, dialects, and how much history is kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.engine.change.numbering import numbered_schemas, numbered_versions
from app.engine.change.view_apply import ViewDraft, apply_view_updates
from app.engine.model.view_metadata import ViewMetadata, read_view_metadata
from app.errors import ClockBehind, InvalidUpdate
from tests.unit.engine.documents import (
    NOW_MS,
    OTHER_UUID,
    UUID,
    Json,
    column,
    schema_json,
    spec_json,
    updates_of,
    view,
    view_version_json,
)
from tests.unit.engine.effort import calls_in

LATER_MS = NOW_MS + 60_000
SET_LAST: Json = {"action": "set-current-view-version", "view-version-id": -1}


def add(document: Json) -> Json:
    return {"action": "add-view-version", "view-version": document}


def add_schema(*columns: Json) -> Json:
    return {"action": "add-schema", "schema": schema_json(*columns, schema_id=99)}


ALLOW_DROP: Json = {"action": "set-properties", "updates": {"replace.drop-dialect.allowed": "true"}}


def applied(base: ViewMetadata, *documents: Json) -> ViewDraft:
    return apply_view_updates(base, updates_of(*documents), LATER_MS)


def committed(base: ViewMetadata, *documents: Json) -> ViewMetadata:
    metadata = applied(base, *documents).finish()
    assert read_view_metadata(metadata.to_json()) == metadata
    return metadata


def refusal(base: ViewMetadata, *documents: Json) -> str:
    with pytest.raises(InvalidUpdate) as caught:
        applied(base, *documents).finish()
    return str(caught.value)


# ------------------------------------------------------------------------------------------------------------ versions


def test_new_version_becomes_current_at_its_own_time() -> None:
    base = view()

    after = committed(base, add(view_version_json(2, sql="select 2")), SET_LAST)

    assert after.current_version.to_object() == view_version_json(2, sql="select 2")
    assert after.versions[0] == base.versions[0]
    assert [(item.version_id, item.timestamp_ms - NOW_MS) for item in after.version_log] == [
        (1, 1000),
        (2, 2000),
    ]


def test_new_version_is_not_current_by_itself() -> None:
    after = committed(view(), add(view_version_json(2, sql="select 2")))

    assert after.current_version_id == 1
    assert len(after.version_log) == 1


@pytest.mark.parametrize(("sent", "given"), [(5, 5), (4, 4), (3, 4), (1, 4), (0, 4), (-1, 4)])
def test_version_id_that_is_taken_or_too_low_becomes_the_next_one(sent: int, given: int) -> None:
    base = view(view_version_json(1), view_version_json(3, sql="select 3"))
    version = view_version_json(9, sql="select 9") | {"version-id": sent}

    assert committed(base, add(version), SET_LAST).current_version_id == given


def test_equal_version_is_found_whatever_its_id_and_time() -> None:
    base = view(view_version_json(1), view_version_json(2, sql="select 2"))
    sent = view_version_json(9)

    after = committed(base, add(sent), SET_LAST)
    ahead = committed(base, add(sent | {"timestamp-ms": 2 * LATER_MS}), SET_LAST)

    assert (after.current_version_id, len(after.versions)) == (1, 2)
    # By the time that was sent the request is known if it comes again.
    times = [(each.version_log[-1].version_id, each.version_log[-1].timestamp_ms) for each in (after, ahead)]
    assert times == [(1, sent["timestamp-ms"]), (1, LATER_MS)]


def test_equal_version_that_is_current_changes_nothing() -> None:
    draft = applied(view(), add(view_version_json(9)), SET_LAST)

    assert not draft.has_changes


def test_two_concurrent_replacements_both_land() -> None:
    """Each client built on version 1 and sends version 2 with its own query."""
    first = committed(view(), add(view_version_json(2, sql="select 2")), SET_LAST)

    second = committed(first, add(view_version_json(2, sql="select 3")), SET_LAST)

    assert [item.version_id for item in second.versions] == [1, 2, 3]
    assert second.current_version_id == 3


def test_version_may_name_the_schema_added_last() -> None:
    after = committed(
        view(), add_schema(column(1, "id"), column(2, "n")), add(view_version_json(2, schema_id=-1)), SET_LAST
    )

    assert [item.schema_id for item in after.schemas] == [0, 1]
    assert after.current_version.schema_id == 1


def test_schema_added_last_may_be_one_that_was_there() -> None:
    after = committed(view(), add_schema(column(1, "id")), add(view_version_json(2, schema_id=-1)), SET_LAST)

    assert [item.schema_id for item in after.schemas] == [0]
    # Compared as it was sent, with -1: so it is a new version with the old definition.
    assert after.current_version_id == 2
    assert after.current_version.schema_id == 0


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        (
            [add(view_version_json(2, schema_id=-1))],
            "Cannot set last added schema: no schema has been added",
        ),
        ([add(view_version_json(2, schema_id=7))], "Cannot add version with unknown schema: 7"),
        ([SET_LAST], "Cannot set last version id: no current version id has been set"),
        (
            [{"action": "set-current-view-version", "view-version-id": 7}],
            "Cannot set current version to unknown version: 7",
        ),
        (
            [add_schema(column(1, "a"), column(1, "b"))],
            "Invalid schema: field id 1 is used more than once (b)",
        ),
    ],
)
def test_version_that_cannot_be_is_refused(updates: list[Json], message: str) -> None:
    assert refusal(view(), *updates) == message


def test_earlier_version_becomes_current_again_now() -> None:
    base = view(view_version_json(1), view_version_json(2, sql="select 2"))

    after = committed(base, {"action": "set-current-view-version", "view-version-id": 1})

    assert after.current_version_id == 1
    assert [(item.version_id, item.timestamp_ms) for item in after.version_log] == [
        (1, NOW_MS + 1000),
        (2, NOW_MS + 2000),
        (1, LATER_MS),
    ]


def test_setting_the_version_that_is_current_changes_nothing() -> None:
    draft = applied(view(), {"action": "set-current-view-version", "view-version-id": 1})

    assert not draft.has_changes
    assert draft.finish() == view()


def test_history_gets_one_entry_for_a_commit() -> None:
    after = committed(
        view(),
        add(view_version_json(2, sql="select 2")),
        SET_LAST,
        add(view_version_json(3, sql="select 3")),
        SET_LAST,
    )

    assert [item.version_id for item in after.version_log] == [1, 3]
    assert [item.version_id for item in after.versions] == [1, 2, 3]


def test_there_is_no_version_id_after_the_last() -> None:
    base = view(view_version_json(1) | {"version-id": 2**31 - 1})

    assert refusal(base, add(view_version_json(2, sql="select 2"))) == (
        "Cannot number another view version: 2147483647 is the last id there is"
    )


def test_half_of_all_version_ids_may_be_chosen_and_more_where_they_are_taken() -> None:
    def new(version_id: int) -> Json:
        return add(view_version_json(2, sql="select 2") | {"version-id": version_id})

    assert committed(view(), new(2**30), SET_LAST).current_version_id == 2**30
    assert refusal(view(), new(2**30 + 1)) == (
        "Cannot add a view version with id 1073741825: it would leave too few ids for others; the highest allowed is "
        "1073741824"
    )
    beyond = view(view_version_json(1) | {"version-id": 2**30 + 7})
    assert committed(beyond, new(2**30 + 8), SET_LAST).current_version_id == 2**30 + 8
    assert committed(beyond, new(3), SET_LAST).current_version_id == 2**30 + 8


def test_version_of_another_day_to_come_is_refused() -> None:
    def new(timestamp_ms: int) -> Json:
        return add(view_version_json(2, sql="select 2") | {"timestamp-ms": timestamp_ms})

    assert committed(view(), new(LATER_MS + 86_400_000), SET_LAST).current_version_id == 2
    assert refusal(view(), new(2**63 - 1)) == (
        "Cannot add view version 2: timestamp-ms 9223372036854775807 is more than a day ahead of 1700000060000; the "
        "highest allowed is 1700086460000"
    )


def test_server_whose_clock_is_behind_blames_nobody_for_a_version() -> None:
    three_days_on = {"timestamp-ms": LATER_MS + 3 * 86_400_000}
    late = view(view_version_json(1) | three_days_on)

    with pytest.raises(ClockBehind, match="The clock of this server is behind"):
        applied(late, add(view_version_json(2, sql="select 2") | three_days_on))


# ------------------------------------------------------------------------------------------------------------ dialects


def test_dialect_of_the_version_before_must_not_get_lost() -> None:
    base = view(view_version_json(1, "spark", "Trino"))

    assert refusal(base, add(view_version_json(2, "spark", sql="select 2")), SET_LAST) == (
        "Cannot replace view due to loss of view dialects (replace.drop-dialect.allowed=false): "
        "previous dialects ['spark', 'trino'], new dialects ['spark']"
    )


@pytest.mark.parametrize(
    "version",
    [
        view_version_json(2, "TRINO", "spark", sql="select 2"),
        view_version_json(2, "trino", "spark", "duckdb", sql="select 2"),
    ],
)
def test_dialects_may_change_case_and_be_added(version: Json) -> None:
    base = view(view_version_json(1, "spark", "Trino"))

    assert committed(base, add(version), SET_LAST).current_version_id == 2


def test_dialect_may_get_lost_where_the_view_allows_it() -> None:
    base = view(view_version_json(1, "spark", "trino"), properties={"replace.drop-dialect.allowed": "true"})
    replace = (add(view_version_json(2, "spark", sql="select 2")), SET_LAST)

    assert committed(base, *replace).current_version_id == 2
    strict = view(view_version_json(1, "spark", "trino"))
    assert committed(strict, ALLOW_DROP, *replace).current_version_id == 2


# ------------------------------------------------------------------------------------------------------------- history


def versions(count: int) -> list[Json]:
    return [view_version_json(number, sql=f"select {number}") for number in range(1, count + 1)]


@pytest.mark.parametrize(
    ("count", "entries", "expected"),
    [(9, None, list(range(1, 11))), (10, None, list(range(2, 12))), (5, "2", [5, 6]), (5, "1", [6])],
)
def test_oldest_versions_are_forgotten_with_their_history(
    count: int, entries: str | None, expected: list[int]
) -> None:
    properties = {"version.history.num-entries": entries} if entries else {}
    base = view(*versions(count), properties=properties)

    after = committed(base, add(view_version_json(count + 1, sql="new")), SET_LAST)

    assert [item.version_id for item in after.versions] == expected
    assert [item.version_id for item in after.version_log] == expected


def test_current_version_is_kept_however_old() -> None:
    base = view(*versions(5), current=1, properties={"version.history.num-entries": "2"})

    after = committed(base, {"action": "set-location", "location": "s3://bucket/w"})

    assert [item.version_id for item in after.versions] == [1, 5]
    assert [item.version_id for item in after.version_log] == [5]


def test_every_version_that_the_commit_adds_is_kept() -> None:
    base = view(*versions(3), properties={"version.history.num-entries": "1"})

    after = committed(
        base, *(add(view_version_json(number, sql=f"new {number}")) for number in (4, 5, 6)), SET_LAST
    )

    assert [item.version_id for item in after.versions] == [4, 5, 6]
    assert [item.version_id for item in after.version_log] == [6]


def test_versions_that_were_never_current_leave_no_gap() -> None:
    base = view(*versions(3), version_log=[{"timestamp-ms": NOW_MS, "version-id": 3}])

    after = committed(base, {"action": "set-properties", "updates": {"version.history.num-entries": "1"}})

    assert [item.version_id for item in after.versions] == [3]
    assert after.version_log == base.version_log


@pytest.mark.parametrize(
    ("entries", "message"), [("0", "must be at least 1, found 0"), ("x", "whole number")]
)
def test_history_that_keeps_nothing_is_refused(entries: str, message: str) -> None:
    update = {"action": "set-properties", "updates": {"version.history.num-entries": entries}}

    assert message in refusal(view(), update)


def test_history_setting_that_another_writer_left_wrong_is_named() -> None:
    base = view(properties={"version.history.num-entries": "0"})

    assert refusal(base, {"action": "set-location", "location": "s3://bucket/w"}) == (
        "version.history.num-entries must be positive but was 0"
    )


# ------------------------------------------------------------------------------------------------- everything else


def test_location_is_kept_as_it_was_sent() -> None:
    assert (
        committed(view(), {"action": "set-location", "location": "s3://bucket/w//"}).location
        == "s3://bucket/w//"
    )
    assert not applied(view(), {"action": "set-location", "location": "s3://bucket/v"}).has_changes


def test_properties_are_merged_and_removed() -> None:
    base = view(properties={"a": "1", "b": "2"})

    after = committed(
        base,
        {"action": "set-properties", "updates": {"b": "3", "c": "4"}},
        {"action": "remove-properties", "removals": ["a", "absent"]},
    )

    assert after.properties == {"b": "3", "c": "4"}
    assert base.properties == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    "update",
    [
        {"action": "set-properties", "updates": {}},
        {"action": "remove-properties", "removals": []},
        {"action": "assign-uuid", "uuid": UUID},
        {"action": "assign-uuid", "uuid": UUID.upper()},
        {"action": "upgrade-format-version", "format-version": 1},
        add_schema(column(1, "id")),
    ],
)
def test_update_that_asks_for_nothing_changes_nothing(update: Json) -> None:
    draft = applied(view(), update)

    assert not draft.has_changes
    assert draft.finish() == view()


def test_new_schema_is_a_change() -> None:
    after = committed(view(), add_schema(column(1, "other")))

    assert [item.schema_id for item in after.schemas] == [0, 1]


@pytest.mark.parametrize(
    ("update", "message"),
    [
        (
            {"action": "assign-uuid", "uuid": OTHER_UUID},
            f"Cannot reassign uuid: the view has {UUID}, the update says {OTHER_UUID}",
        ),
        ({"action": "upgrade-format-version", "format-version": 0}, "Cannot downgrade v1 view to v0"),
        (
            {"action": "upgrade-format-version", "format-version": 2},
            "Cannot upgrade view to unsupported format version: v2 (supported: v1)",
        ),
        (
            {"action": "set-properties", "updates": {"replace.drop-dialect.allowed": "1"}},
            "Table property replace.drop-dialect.allowed must be true or false, found '1'",
        ),
        ({"action": "add-spec", "spec": spec_json()}, "Cannot apply add-spec to a view: it is for tables"),
        (
            {"action": "remove-snapshots", "snapshot-ids": []},
            "Cannot apply remove-snapshots to a view: it is for tables",
        ),
        (
            {"action": "set-current-schema", "schema-id": 0},
            "Cannot apply set-current-schema to a view: it is for tables",
        ),
    ],
)
def test_update_that_a_view_cannot_take_is_refused(update: Json, message: str) -> None:
    assert refusal(view(), update) == message


def test_fields_that_nobody_knows_survive_whatever_their_names() -> None:
    unknown = {"vendor": {"a": [None]}, "view_uuid": 1, "_fields_set": 2, "self": 3}
    base = view(vendor=1)
    base = base.with_unknown_fields(unknown)

    after = committed(base, add(view_version_json(2, sql="select 2")), SET_LAST)

    assert after.unknown_fields == unknown


def test_draft_is_a_copy_and_can_be_finished_twice() -> None:
    base = view(*versions(10))
    before = base.to_json()
    draft = applied(base, add(view_version_json(11, sql="new")), SET_LAST)

    first = draft.finish()

    assert draft.finish() == first
    assert base.to_json() == before


def test_view_without_a_uuid_a_location_or_a_version_is_none() -> None:
    draft = ViewDraft(base=None, now_ms=NOW_MS)
    whole = view()

    for name, message in (
        ("view_uuid", "The view has no uuid: the updates need an assign-uuid"),
        ("location", "The view has no location: the updates need a set-location"),
        ("versions", "Invalid view: no versions were added"),
        ("current_version_id", "Invalid view: no versions were added"),
    ):
        with pytest.raises(InvalidUpdate) as caught:
            draft.finish()
        assert str(caught.value) == message
        setattr(
            draft, name, numbered_versions(whole.versions) if name == "versions" else getattr(whole, name)
        )
    draft.schemas = numbered_schemas(whole.schemas)

    assert draft.finish().versions == whole.versions


# --------------------------------------------------------------------------------------------------------------- effort


@pytest.mark.parametrize(
    "update",
    [
        lambda number: add(view_version_json(number + 2, sql=f"select {number}")),
        lambda number: add_schema(column(1, f"c{number}")),
    ],
)
def test_ten_times_as_many_updates_are_about_ten_times_the_work(update: Callable[[int], Json]) -> None:
    def work(count: int) -> int:
        updates = updates_of(*map(update, range(count)))
        return calls_in(lambda: apply_view_updates(view(), updates, LATER_MS).finish())

    assert work(500) < 15 * work(50)
