"""Edits of statistics files and encryption keys."""

from __future__ import annotations

import pytest

from tests.unit.engine.documents import Json, applied, committed, table, table_with_snapshots


def statistics(snapshot_id: int, path: str = "s3://b/s") -> Json:
    return {
        "snapshot-id": snapshot_id,
        "statistics-path": path,
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
        "vendor": 1,
    }


def partition_statistics(snapshot_id: int, path: str = "s3://b/p") -> Json:
    return {"snapshot-id": snapshot_id, "statistics-path": path, "file-size-in-bytes": 1, "vendor": 2}


def set_statistics(*arguments: int | str) -> Json:
    return {"action": "set-statistics", "statistics": statistics(*arguments)}  # type: ignore[arg-type]  # id, path


def set_partition_statistics(*arguments: int | str) -> Json:
    file = partition_statistics(*arguments)  # type: ignore[arg-type]  # id, path
    return {"action": "set-partition-statistics", "partition-statistics": file}


def key(name: str, secret: str = "AA==") -> Json:
    return {"key-id": name, "encrypted-key-metadata": secret, "vendor": 3}


BASE = table_with_snapshots(
    2,
    statistics=[statistics(1), statistics(1, "second"), statistics(2)],
    partition_statistics=[partition_statistics(1), partition_statistics(2)],
)


def test_statistics_of_a_snapshot_are_replaced_all_together() -> None:
    after = committed(BASE, set_statistics(1, "new"), set_partition_statistics(1, "new")).to_object()

    assert after["statistics"] == [statistics(2), statistics(1, "new")]
    assert after["partition-statistics"] == [partition_statistics(2), partition_statistics(1, "new")]


def test_snapshot_of_statistics_need_not_be_there() -> None:
    after = committed(BASE, set_statistics(77), set_partition_statistics(77)).to_object()

    assert after["statistics"][-1] == statistics(77)
    assert after["partition-statistics"][-1] == partition_statistics(77)


@pytest.mark.parametrize("update", [set_statistics(2), set_partition_statistics(2)])
def test_equal_statistics_count_as_a_change(update: Json) -> None:
    assert applied(BASE, update).has_changes


def test_statistics_of_a_snapshot_are_removed_all_together() -> None:
    after = committed(
        BASE,
        {"action": "remove-statistics", "snapshot-id": 1},
        {"action": "remove-partition-statistics", "snapshot-id": 2},
    ).to_object()

    assert after["statistics"] == [statistics(2)]
    assert after["partition-statistics"] == [partition_statistics(1)]


@pytest.mark.parametrize(
    "update",
    [
        {"action": "remove-statistics", "snapshot-id": 77},
        {"action": "remove-partition-statistics", "snapshot-id": 77},
        {"action": "remove-encryption-key", "key-id": "k"},
    ],
)
def test_removing_what_is_not_there_changes_nothing(update: Json) -> None:
    assert not applied(BASE, update).has_changes


def test_removal_does_not_undo_the_changes_before_it() -> None:
    touch: Json = {"action": "set-properties", "updates": {"a": "b"}}

    for action, name, value in (
        ("remove-statistics", "snapshot-id", 77),
        ("remove-partition-statistics", "snapshot-id", 77),
        ("remove-encryption-key", "key-id", "k"),
    ):
        assert applied(BASE, touch, {"action": action, name: value}).has_changes


def test_keys_are_added_once_and_never_overwritten() -> None:
    base = table(3, encryption_keys=[key("a")])

    after = committed(
        base,
        {"action": "add-encryption-key", "encryption-key": key("a", "BBBB")},
        {"action": "add-encryption-key", "encryption-key": key("b")},
    )

    assert after.to_object()["encryption-keys"] == [key("a"), key("b")]
    assert not applied(base, {"action": "add-encryption-key", "encryption-key": key("a", "BBBB")}).has_changes


def test_keys_are_removed_and_no_empty_list_stays() -> None:
    base = table(3, encryption_keys=[key("a"), key("b")])
    remove_a: Json = {"action": "remove-encryption-key", "key-id": "a"}
    remove_b: Json = {"action": "remove-encryption-key", "key-id": "b"}

    assert committed(base, remove_a).to_object()["encryption-keys"] == [key("b")]
    assert "encryption-keys" not in committed(base, remove_a, remove_b).to_object()
