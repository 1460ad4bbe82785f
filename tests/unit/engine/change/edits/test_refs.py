"""Edits of branches and tags, and what they do to the current snapshot and its log."""

from __future__ import annotations

import pytest

from app.engine.change.draft import MetadataDraft
from app.engine.model.table_metadata import TableMetadata
from app.errors import InvalidUpdate
from tests.unit.engine.documents import (
    NOW_MS,
    Json,
    add_snapshot,
    applied,
    committed,
    set_ref,
    snapshot_json,
    table,
    table_with_snapshots,
)

BASE = table_with_snapshots(3)
LATER_MS = NOW_MS + 60_000
DROP_MAIN: Json = {"action": "remove-snapshot-ref", "ref-name": "main"}


def refusal(*updates: Json) -> str:
    with pytest.raises(InvalidUpdate) as caught:
        applied(BASE, *updates)
    return str(caught.value)


def logged(metadata: TableMetadata) -> list[tuple[int, int]]:
    return [(entry.snapshot_id, entry.timestamp_ms - NOW_MS) for entry in metadata.snapshot_log]


OLD_LOG = [(1, 1000), (2, 2000), (3, 3000)]


def test_branches_and_tags_are_made_with_their_retention() -> None:
    after = committed(
        BASE,
        set_ref("audit", 1, "branch", min_snapshots_to_keep=2, max_snapshot_age_ms=3, max_ref_age_ms=4),
        set_ref("v1", 2, "tag", max_ref_age_ms=5),
    )

    assert after.to_object()["refs"] == {
        "main": {"snapshot-id": 3, "type": "branch"},
        "audit": {
            "snapshot-id": 1,
            "type": "branch",
            "min-snapshots-to-keep": 2,
            "max-snapshot-age-ms": 3,
            "max-ref-age-ms": 4,
        },
        "v1": {"snapshot-id": 2, "type": "tag", "max-ref-age-ms": 5},
    }
    assert logged(after) == OLD_LOG
    assert after.current_snapshot_id == 3


def test_ref_is_replaced_as_a_whole() -> None:
    base = committed(BASE, set_ref("audit", 1, min_snapshots_to_keep=2, max_ref_age_ms=4))

    after = committed(base, set_ref("audit", 2, max_ref_age_ms=9))

    assert after.to_object()["refs"]["audit"] == {"snapshot-id": 2, "type": "branch", "max-ref-age-ms": 9}


def test_branch_may_become_a_tag() -> None:
    base = committed(BASE, set_ref("audit", 1, min_snapshots_to_keep=2))

    assert committed(base, set_ref("audit", 1, "tag")).snapshot_refs["audit"].type == "tag"


def vendor_table() -> TableMetadata:
    main = {"snapshot-id": 3, "type": "branch", "min-snapshots-to-keep": 2, "vendor": [1]}
    return table_with_snapshots(3, refs={"main": main, "v1": {"snapshot-id": 1, "type": "tag", "vendor": 2}})


def test_fields_of_a_ref_that_nobody_knows_survive_its_moves() -> None:
    after = committed(vendor_table(), set_ref("main", 2), set_ref("v1", 3, "tag"))

    assert after.to_object()["refs"] == {
        "main": {"snapshot-id": 2, "type": "branch", "vendor": [1]},
        "v1": {"snapshot-id": 3, "type": "tag", "vendor": 2},
    }


def test_fields_of_a_ref_that_nobody_knows_do_not_survive_its_turning_into_something_else() -> None:
    after = committed(vendor_table(), set_ref("v1", 3, "branch"))

    assert after.to_object()["refs"]["v1"] == {"snapshot-id": 3, "type": "branch"}


@pytest.mark.parametrize("base", [BASE, vendor_table()])
def test_equal_ref_changes_nothing(base: TableMetadata) -> None:
    keep = base.snapshot_refs["main"].min_snapshots_to_keep

    draft = applied(base, set_ref("main", 3, min_snapshots_to_keep=keep))

    assert not draft.has_changes
    assert draft.finish(None).snapshot_log == base.snapshot_log


@pytest.mark.parametrize(
    ("update", "message"),
    [
        (set_ref("main", 9), "Cannot set main to unknown snapshot: 9"),
        (set_ref("v1", 9, "tag"), "Cannot set v1 to unknown snapshot: 9"),
        (set_ref("main", 3, "tag"), "Cannot set main to a tag: it must be a branch"),
        (
            set_ref("a", 1, min_snapshots_to_keep=0),
            "Invalid min-snapshots-to-keep for a: 0, it must be greater than 0",
        ),
        (
            set_ref("a", 1, max_snapshot_age_ms=-1),
            "Invalid max-snapshot-age-ms for a: -1, it must be greater than 0",
        ),
        (
            set_ref("a", 1, "tag", max_ref_age_ms=0),
            "Invalid max-ref-age-ms for a: 0, it must be greater than 0",
        ),
        (
            set_ref("a", 1, "tag", min_snapshots_to_keep=1),
            "Tags do not support setting min-snapshots-to-keep (a)",
        ),
        (
            set_ref("a", 1, "tag", max_snapshot_age_ms=1),
            "Tags do not support setting max-snapshot-age-ms (a)",
        ),
    ],
)
def test_ref_that_cannot_be_is_refused(update: Json, message: str) -> None:
    assert refusal(update) == message


def test_new_snapshot_becomes_current_at_its_own_time() -> None:
    after = committed(BASE, add_snapshot(snapshot_json(4, 4, 3)), set_ref("main", 4))

    assert after.current_snapshot_id == 4
    assert logged(after) == [*OLD_LOG, (4, 4000)]


def test_rollback_happens_now() -> None:
    after = committed(BASE, set_ref("main", 1))

    assert after.current_snapshot_id == 1
    assert logged(after) == [*OLD_LOG, (1, 60_000)]
    assert after.last_updated_ms == LATER_MS


def test_other_refs_never_touch_the_log() -> None:
    after = committed(BASE, add_snapshot(snapshot_json(4, 4, 3)), set_ref("audit", 4))

    assert after.current_snapshot_id == 3
    assert logged(after) == OLD_LOG


def test_snapshot_that_was_current_only_inside_the_commit_leaves_no_trace() -> None:
    after = committed(
        BASE,
        add_snapshot(snapshot_json(4, 4, 3)),
        set_ref("main", 4),
        add_snapshot(snapshot_json(5, 5, 4)),
        set_ref("main", 5),
    )

    assert logged(after) == [*OLD_LOG, (5, 5000)]
    assert [item.snapshot_id for item in after.snapshots] == [1, 2, 3, 4, 5]


def test_new_snapshot_that_main_left_again_leaves_no_trace() -> None:
    after = committed(
        BASE, add_snapshot(snapshot_json(4, 4, 3)), set_ref("main", 4), set_ref("audit", 4), DROP_MAIN
    )

    assert after.current_snapshot is None
    assert logged(after) == OLD_LOG


def test_without_main_there_is_no_current_snapshot_but_still_a_log() -> None:
    after = committed(BASE, DROP_MAIN)

    assert after.current_snapshot is None
    assert "main" not in after.snapshot_refs
    assert logged(after) == OLD_LOG


@pytest.mark.parametrize("name", ["gone", "", "Main"])
def test_removing_a_ref_that_is_not_there_changes_nothing(name: str) -> None:
    assert not applied(BASE, {"action": "remove-snapshot-ref", "ref-name": name}).has_changes


def test_removing_another_ref_leaves_main_alone() -> None:
    base = committed(BASE, set_ref("v1", 1, "tag"))

    after = committed(base, {"action": "remove-snapshot-ref", "ref-name": "v1"})

    assert set(after.snapshot_refs) == {"main"}
    assert after.current_snapshot_id == 3


def test_names_of_refs_tell_case_apart() -> None:
    draft: MetadataDraft = applied(BASE, set_ref("Main", 1, "tag"))

    assert draft.current_snapshot_id == 3
    assert set(draft.refs) == {"main", "Main"}


def test_table_without_snapshots_has_nothing_to_point_at() -> None:
    with pytest.raises(InvalidUpdate, match=r"^Cannot set main to unknown snapshot: 1$"):
        applied(table(), set_ref("main", 1))
