"""JSON of branches and tags: changes, refs, and receipts of changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field

from app.api.bodies.json_answer import present
from app.api.bodies.json_body import ExtensionBody
from app.catalog.refs import NamedRef, Receipt
from app.engine.branches.ref_changes import (
    CherryPick,
    FastForward,
    Move,
    Pick,
    Publish,
    RefChange,
    RollBack,
    ToRef,
    ToSnapshot,
    ToTime,
    Unchecked,
)
from app.engine.model.document import LONG, Int, Long
from app.engine.model.ids import SnapshotId
from app.errors import InvalidRequest

Name = Annotated[str, Field(min_length=1)]
RETENTION = ("min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms")


class ChangeRefBody(ExtensionBody):
    """A change of a ref, with at most one of the seven targets; what is left out stays."""

    type: Literal["branch", "tag"] | None = None
    snapshot_id: Annotated[SnapshotId, LONG] | None = None
    ref: Name | None = None
    timestamp_ms: Long | None = None
    fast_forward_to: Name | None = None
    rollback_to: Annotated[SnapshotId, LONG] | Name | None = None
    cherry_pick: Annotated[SnapshotId, LONG] | None = None
    publish: Name | None = None
    min_snapshots_to_keep: Int | None = None
    max_snapshot_age_ms: Long | None = None
    max_ref_age_ms: Long | None = None
    expected_snapshot_id: Annotated[SnapshotId, LONG] | None = None

    def change_of(self, name: str) -> RefChange:
        """Return the change of a branch or tag; raises `InvalidRequest` if it has two targets."""
        given = {_kebab(key) for key in self.model_fields_set}
        retention = {key: getattr(self, key.replace("-", "_")) for key in RETENTION if key in given}
        return RefChange(
            name=name,
            move=self._move(),
            type=self.type,
            retention=retention,
            # null is an expectation too: that the ref does not exist yet.
            expected=self.expected_snapshot_id if "expected-snapshot-id" in given else Unchecked.UNCHECKED,
        )

    def _move(self) -> Move | Pick | None:
        ways: dict[str, Move | Pick | None] = {
            "snapshot-id": None if self.snapshot_id is None else ToSnapshot(self.snapshot_id),
            "ref": None if self.ref is None else ToRef(self.ref),
            "timestamp-ms": None if self.timestamp_ms is None else ToTime(self.timestamp_ms),
            "fast-forward-to": None if self.fast_forward_to is None else FastForward(self.fast_forward_to),
            "rollback-to": None if self.rollback_to is None else RollBack(self.rollback_to),
            "cherry-pick": None if self.cherry_pick is None else CherryPick(self.cherry_pick),
            "publish": None if self.publish is None else Publish(self.publish),
        }
        wanted = {key: way for key, way in ways.items() if way is not None}
        if len(wanted) > 1:
            raise InvalidRequest(f"Invalid body: only one of {', '.join(wanted)} can say where to")
        return next(iter(wanted.values()), None)


def _kebab(name: str) -> str:
    return name.replace("_", "-")


def refs_json(refs: Sequence[NamedRef]) -> bytes:
    """Return branches and tags with facts of their snapshots."""
    return orjson.dumps({"refs": [ref_object(ref) for ref in refs]})


def ref_json(ref: NamedRef) -> bytes:
    """Return one branch or tag."""
    return orjson.dumps(ref_object(ref))


def ref_object(named: NamedRef) -> dict[str, Any]:
    """Return one branch or tag as a JSON value."""
    return {
        "name": named.name,
        **named.ref.to_object(),
        "timestamp-ms": named.snapshot.timestamp_ms,
        "operation": named.snapshot.operation or "unknown",
    }


def receipt_json(receipt: Receipt) -> bytes:
    """Return the receipt of a change, without members that have no value."""
    facts: dict[str, Any] = {
        "namespace": receipt.identifier.namespace.levels,
        "table": receipt.identifier.name,
        "ref": receipt.name,
        "changed": receipt.changed,
        "snapshot-id-before": receipt.snapshot_before,
        "snapshot-id-after": receipt.snapshot_after,
        "metadata-location-before": receipt.location_before,
        "metadata-location-after": receipt.location_after,
        "reference": receipt.ref.to_object() if receipt.ref else None,
        "sequence": receipt.sequence,
        "at-ms": receipt.at_ms,
        "author": receipt.author,
        "request-id": receipt.request_id,
    }
    return orjson.dumps(present(facts))
