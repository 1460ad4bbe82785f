from __future__ import annotations

import pytest

from app.engine.branches.ref_changes import (
    CherryPick,
    FastForward,
    Move,
    PickKind,
    Publish,
    RefChange,
    RollBack,
    ToRef,
    ToSnapshot,
    ToTime,
    Unchecked,
    check_expected,
    destination,
    pick_kind,
    picked_snapshot,
    ref_type,
    set_ref,
)
from app.engine.model.ids import SnapshotId
from app.engine.model.snapshot import SnapshotLogEntry
from app.engine.model.table_metadata import TableMetadata
from app.errors import InvalidRefMove, NoSuchRef, NoSuchSnapshot, RequirementFailed
from tests.builders.catalogs import START_MS
from tests.builders.histories import branch, history, line, snapshot, tag


def number(value: int) -> SnapshotId:
    return SnapshotId(value)


def logged(metadata: TableMetadata, *entries: tuple[int, int]) -> TableMetadata:
    log = [
        SnapshotLogEntry(snapshot_id=number(who), timestamp_ms=START_MS + when * 1000)
        for who, when in entries
    ]
    return metadata.replace(snapshot_log=tuple(log))


# 1 ─ 2 ─ 3 (main)      2 was current for a while, then 4, which was rolled back.
#      └─ 4 ─ 5 (audit)
AUDIT = branch(5, min_snapshots_to_keep=9, max_ref_age_ms=7)
FORKED = logged(
    history(
        [*line(3), snapshot(4, 2), snapshot(5, 4)],
        {"main": branch(3), "audit": AUDIT, "v1": tag(1, max_ref_age_ms=5)},
    ),
    *((1, 1), (2, 2), (4, 4), (3, 6)),
)


@pytest.mark.parametrize(
    ("name", "move", "found"),
    [
        ("main", None, 3),
        ("fresh", None, 3),
        ("main", ToSnapshot(number(4)), 4),
        ("main", ToRef("v1"), 1),
        ("main", ToTime(START_MS + 5_000), 4),
        ("main", ToTime(START_MS + 4_000), 4),
        ("fresh", ToTime(START_MS + 2_500), 2),
        ("v1", ToTime(START_MS + 9_000), 3),
        ("audit", ToTime(START_MS + 4_500), 4),
        ("audit", ToTime(START_MS + 3_500), 2),
        ("fresh", FastForward("audit"), 5),
        ("audit", FastForward("audit"), 5),
        ("audit", RollBack(number(2)), 2),
        ("audit", RollBack("v1"), 1),
    ],
)
def test_moves_lead_where_they_say(name: str, move: Move | None, found: int) -> None:
    assert destination(FORKED, name, move) == found


@pytest.mark.parametrize(
    ("name", "move", "error"),
    [
        ("main", ToSnapshot(number(99)), NoSuchSnapshot),
        ("main", ToRef("nope"), NoSuchRef),
        ("main", ToTime(START_MS), NoSuchSnapshot),
        ("audit", ToTime(START_MS), NoSuchSnapshot),
        ("main", FastForward("nope"), NoSuchRef),
        ("main", FastForward("audit"), InvalidRefMove),
        ("main", RollBack(number(4)), InvalidRefMove),
        ("main", RollBack(number(99)), NoSuchSnapshot),
        ("nope", RollBack(number(1)), NoSuchRef),
    ],
)
def test_moves_that_lead_nowhere_are_refused(name: str, move: Move, error: type[Exception]) -> None:
    with pytest.raises(error):
        destination(FORKED, name, move)


def test_snapshot_that_was_current_and_is_gone_is_not_replaced_by_another() -> None:
    expired = logged(history(line(2), {"main": branch(2)}), (9, 1), (2, 5))

    with pytest.raises(NoSuchSnapshot, match="9"):
        destination(expired, "main", ToTime(START_MS + 2_000))


def test_expectation_is_met_or_told() -> None:
    check_expected(FORKED, "main", number(3))
    check_expected(FORKED, "fresh", None)
    check_expected(FORKED, "main", Unchecked.UNCHECKED)
    with pytest.raises(RequirementFailed, match="branch main has changed: expected id 1 != 3"):
        check_expected(FORKED, "main", number(1))
    with pytest.raises(RequirementFailed, match="tag v1 exists, at 1"):
        check_expected(FORKED, "v1", None)
    with pytest.raises(RequirementFailed, match="branch or tag fresh is missing, expected 1"):
        check_expected(FORKED, "fresh", number(1))


def test_what_a_ref_is_stays_unless_it_is_said() -> None:
    assert ref_type(FORKED, RefChange("v1")) == "tag"
    assert ref_type(FORKED, RefChange("audit")) == "branch"
    assert ref_type(FORKED, RefChange("fresh")) == "branch"
    assert ref_type(FORKED, RefChange("fresh", type="tag")) == "tag"


@pytest.mark.parametrize(
    "move", [FastForward("audit"), RollBack(number(1)), CherryPick(number(4)), Publish("x")]
)
def test_tags_go_neither_ahead_nor_back(move: FastForward | RollBack | CherryPick | Publish) -> None:
    with pytest.raises(InvalidRefMove, match="v1"):
        ref_type(FORKED, RefChange("v1", move))


def test_retention_stays_changes_and_is_cleared() -> None:
    kept = set_ref(FORKED, RefChange("audit"), number(4))
    changed = set_ref(
        FORKED, RefChange("audit", retention={"min-snapshots-to-keep": 2, "max-ref-age-ms": None}), number(4)
    )
    made_tag = set_ref(FORKED, RefChange("audit", type="tag"), number(4))

    assert (kept.min_snapshots_to_keep, kept.max_ref_age_ms, kept.snapshot_id) == (9, 7, 4)
    assert (changed.min_snapshots_to_keep, changed.max_ref_age_ms) == (2, None)
    # Only the age of a ref means something for a tag too.
    assert (made_tag.type, made_tag.min_snapshots_to_keep, made_tag.max_ref_age_ms) == ("tag", None, 7)


def with_summary(number_: int, parent: int | None, **summary: str) -> object:
    return snapshot(number_, parent).replace(
        summary={key.replace("_", "-"): value for key, value in summary.items()}
    )


def picking(picked: object, *on_main: object) -> PickKind:
    metadata = history([*line(2), *on_main, picked], {"main": branch(2 + len(on_main))})  # type: ignore[list-item]  # snapshots
    return pick_kind(metadata, "main", metadata.snapshots[-1])


@pytest.mark.parametrize(
    ("picked", "kind"),
    [
        (with_summary(9, 2, operation="delete"), PickKind.FAST_FORWARD),
        (with_summary(9, 1, operation="append"), PickKind.APPEND),
        (with_summary(9, None, operation="append"), PickKind.APPEND),
        (with_summary(9, 1, operation="overwrite", replace_partitions="true"), PickKind.REPLACE_PARTITIONS),
        (
            with_summary(9, None, operation="overwrite", replace_partitions="true"),
            PickKind.REPLACE_PARTITIONS,
        ),
    ],
)
def test_snapshots_are_picked_as_the_reference_does(picked: object, kind: PickKind) -> None:
    assert picking(picked) is kind


@pytest.mark.parametrize(
    ("picked", "on_main", "words"),
    [
        (with_summary(9, 1, operation="overwrite"), (), "not append, dynamic overwrite, or fast-forward"),
        (with_summary(9, 1, operation="delete"), (), "not append"),
        (with_summary(9, 8, operation="overwrite", replace_partitions="true"), (), "non-ancestor"),
        (
            with_summary(9, 1, operation="append"),
            (with_summary(3, 2, source_snapshot_id="9"),),
            "already picked to create ancestor 3",
        ),
        (
            with_summary(9, 1, **{"operation": "append", "wap.id": "n"}),
            (with_summary(3, 2, published_wap_id="n"),),
            "published already: n",
        ),
        (
            with_summary(9, 3, **{"operation": "append", "wap.id": "n"}),
            (with_summary(3, 2, **{"wap.id": "n"}),),
            "published already: n",
        ),
    ],
)
def test_picks_that_cannot_be_are_refused(picked: object, on_main: tuple[object, ...], words: str) -> None:
    with pytest.raises(InvalidRefMove, match=words):
        picking(picked, *on_main)


def test_what_is_on_the_branch_already_is_not_picked() -> None:
    with pytest.raises(InvalidRefMove, match="already an ancestor"):
        pick_kind(FORKED, "main", FORKED.snapshots[0])


def test_first_snapshot_of_an_empty_table_is_fast_forwarded_to_and_other_branches_must_exist() -> None:
    staged = history([snapshot(1)], {})

    assert pick_kind(staged, "main", staged.snapshots[0]) is PickKind.FAST_FORWARD
    with pytest.raises(NoSuchRef):
        pick_kind(staged, "audit", staged.snapshots[0])


def test_staged_snapshot_is_found_by_its_wap_id() -> None:
    staged = snapshot(3, 2).replace(summary={"operation": "append", "wap.id": "nightly"})
    metadata = history([*line(2), staged], {"main": branch(2)})

    assert picked_snapshot(metadata, Publish("nightly")).snapshot_id == 3
    assert picked_snapshot(metadata, CherryPick(number(1))).snapshot_id == 1
    with pytest.raises(NoSuchSnapshot, match="daily"):
        picked_snapshot(metadata, Publish("daily"))
