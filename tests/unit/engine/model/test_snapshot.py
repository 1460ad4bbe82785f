"""Snapshots: what they need in each format version."""

from __future__ import annotations

import json

import pytest

from app.engine.model.snapshot import Snapshot
from app.errors import InvalidMetadata
from tests.unit.engine.documents import Json, encoded, snapshot_json


def test_snapshot_is_read_and_written_without_loss() -> None:
    document = snapshot_json(
        *(7, 3, 6),
        schema_id=2,
        first_row_id=10,
        added_rows=5,
        key_id="k1",
        vendor={"a": None},
    )

    snapshot = Snapshot.from_json(encoded(document))

    assert json.loads(snapshot.to_json()) == document
    assert snapshot.sequence == 3


def test_v1_snapshot_may_list_its_manifests_itself_and_has_sequence_number_0() -> None:
    document: Json = {"snapshot-id": 7, "timestamp-ms": 1, "manifests": ["a.avro", "b.avro"]}

    snapshot = Snapshot.from_json(encoded(document))

    assert snapshot.sequence == 0
    assert json.loads(snapshot.to_json()) == document


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"manifest-list": None}, "a snapshot needs a manifest-list"),
        ({"first-row-id": 1}, "a snapshot with first-row-id needs added-rows"),
        ({"first-row-id": -1, "added-rows": 1}, "first-row-id: "),
        ({"first-row-id": 1, "added-rows": -1}, "added-rows: "),
        ({"sequence-number": -1}, "sequence-number: "),
        ({"timestamp-ms": -1}, "timestamp-ms: "),
        ({"timestamp-ms": None}, "timestamp-ms: "),
        ({"summary": {"a": 1}}, "summary.a: "),
    ],
)
def test_snapshot_with_a_wrong_part_is_refused(changes: Json, reason: str) -> None:
    with pytest.raises(InvalidMetadata, match=f"^{reason}"):
        Snapshot.from_json(encoded(snapshot_json(7, 3) | changes))


@pytest.mark.parametrize(
    ("summary", "operation", "replaces"),
    [
        (None, None, False),
        ({"operation": "append", "replace-partitions": "true"}, "append", False),
        ({"operation": "overwrite", "replace-partitions": "TRUE"}, "overwrite", True),
        ({"operation": "overwrite"}, "overwrite", False),
    ],
)
def test_operation_is_what_the_summary_says(
    summary: Json | None, operation: str | None, replaces: bool
) -> None:
    snapshot = Snapshot.from_json(encoded(snapshot_json(7, 3) | {"summary": summary}))

    assert (snapshot.operation, snapshot.replaces_partitions) == (operation, replaces)


def test_manifests_beside_a_manifest_list_do_not_count() -> None:
    found = Snapshot.model_validate(
        snapshot_json(1) | {"manifest-list": "s3://b/list.avro", "manifests": ["x"]}
    )

    assert (found.manifest_list, found.manifests) == ("s3://b/list.avro", None)
    assert "manifests" not in found.to_object()
