"""Branches and tags as documents."""

from __future__ import annotations

import pytest

from app.engine.model.ids import SnapshotId
from app.engine.model.refs import SnapshotRef
from app.errors import InvalidMetadata
from tests.unit.engine.documents import encoded


def test_branches_and_tags_are_told_apart() -> None:
    assert SnapshotRef(snapshot_id=SnapshotId(1), type="branch").is_branch
    assert not SnapshotRef(snapshot_id=SnapshotId(1), type="tag").is_branch


@pytest.mark.parametrize("name", ["min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms"])
@pytest.mark.parametrize("value", [0, -1, "1", 1.5])
def test_retention_that_keeps_nothing_is_refused(name: str, value: object) -> None:
    with pytest.raises(InvalidMetadata, match=f"^{name}: "):
        SnapshotRef.from_json(encoded({"snapshot-id": 1, "type": "branch", name: value}))


def test_ref_that_is_neither_branch_nor_tag_is_refused() -> None:
    with pytest.raises(InvalidMetadata, match=r"^type: "):
        SnapshotRef.from_json(encoded({"snapshot-id": 1, "type": "head"}))
