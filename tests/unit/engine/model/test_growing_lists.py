"""JSON that is copied from an earlier state: the same bytes as if all of it were written out."""

from __future__ import annotations

import pytest

from app.engine.model.document import Document
from app.engine.model.growing_lists import count_gone
from app.engine.model.snapshot import MetadataLogEntry, Snapshot
from app.engine.model.table_metadata import TableMetadata
from tests.unit.engine.documents import (
    NOW_MS,
    Json,
    add_snapshot,
    committed,
    set_ref,
    snapshot_json,
    table_with_snapshots,
)


def appended(base: TableMetadata, number: int) -> TableMetadata:
    snapshot = snapshot_json(number, number, base.current_snapshot_id)
    return committed(
        base, add_snapshot(snapshot), set_ref("main", number), now_ms=NOW_MS + 1_000_000 + number * 1000
    )


def check_written(metadata: TableMetadata) -> None:
    assert metadata.to_json() == Document.to_json(metadata)


@pytest.mark.parametrize(
    "unknown", [{}, {"nothing": None}, {"snapshots ": [], "location": {"b": [1]}, "z": 'a"snapshots":[],"'}]
)
@pytest.mark.parametrize("count", [0, 1, 100])
def test_table_is_written_like_any_document(count: int, unknown: Json) -> None:
    made = table_with_snapshots(count) if count else table_with_snapshots(1).replace(snapshots=(), refs={})
    metadata = made.replace(properties={"snapshots": "[]", '","snapshots":[': "é"}).with_unknown_fields(
        unknown
    )

    check_written(metadata)
    check_written(metadata)


def test_each_state_is_written_whole_whatever_was_known() -> None:
    state = table_with_snapshots(60)
    check_written(state)
    for number in range(61, 70):
        state = appended(state, number)
        check_written(state)
    state = committed(state, {"action": "set-properties", "updates": {"a": "b"}})
    check_written(state)
    state = committed(state, {"action": "remove-snapshots", "snapshot-ids": [1, 2, 30]})
    check_written(state)
    unwritten = appended(appended(state, 70), 71)
    check_written(appended(unwritten, 72))
    check_written(state)
    check_written(appended(state, 73))
    check_written(unwritten)


def test_snapshot_that_differs_is_not_taken_for_the_one_before() -> None:
    earlier = table_with_snapshots(60)
    earlier.to_json()
    other = earlier.snapshots[30].replace(summary={"operation": "overwrite"})
    changed = earlier.replace(snapshots=(*earlier.snapshots[:30], other, *earlier.snapshots[31:]))

    check_written(changed.continuing(earlier))
    check_written(earlier.replace(snapshots=earlier.snapshots[:50]).continuing(earlier))


def test_only_what_is_new_is_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    state = table_with_snapshots(60)
    state.to_json()
    written: list[int] = []
    to_json = Snapshot.to_json

    def counted(self: Snapshot) -> bytes:
        written.append(self.snapshot_id)
        return to_json(self)

    monkeypatch.setattr(Snapshot, "to_json", counted)
    state = appended(appended(state, 61), 62)
    state.to_json()
    appended(state, 63).to_json()

    assert written == [61, 62, 63]


def test_log_that_drops_its_first_entries_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    state = committed(table_with_snapshots(1), properties(keep=20, number=0))
    for number in range(1, 40):
        state = committed(state, properties(keep=20, number=number))
        check_written(state)
    assert len(state.metadata_log) == 20
    written: list[MetadataLogEntry] = []
    to_json = MetadataLogEntry.to_json

    def counted(self: MetadataLogEntry) -> bytes:
        written.append(self)
        return to_json(self)

    monkeypatch.setattr(MetadataLogEntry, "to_json", counted)
    after = committed(state, properties(keep=20, number=40))
    after.to_json()

    assert written == [state.metadata_log[0], after.metadata_log[-1]]
    check_written(committed(after, properties(keep=3, number=41)))
    check_written(committed(after, properties(keep=50, number=41)))


def properties(keep: int, number: int) -> Json:
    updates = {"write.metadata.previous-versions-max": str(keep), "number": str(number)}
    return {"action": "set-properties", "updates": updates}


def test_what_is_gone_from_the_front_is_counted() -> None:
    a, b, c, d = ([name] for name in "abcd")

    assert count_gone((a, b), (a, b)) == 0
    assert count_gone((a, b, c), (a, b)) == 0
    assert count_gone((b, c, d), (a, b, c)) == 1
    assert count_gone((c,), (a, b, c)) == 2


def test_other_changes_are_not_counted() -> None:
    a, b, c, d = ([name] for name in "abcd")

    assert count_gone((a, c), (a, b, c)) is None
    assert count_gone((a,), (a, b)) is None
    assert count_gone((d, b), (a, b)) is None
    assert count_gone((["a"], b), (a, b)) is None
    assert count_gone((), (a,)) is None
    assert count_gone((a,), ()) is None
