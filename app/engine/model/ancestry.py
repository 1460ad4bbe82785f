"""How snapshots descend from each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from app.engine.model.ids import SnapshotId
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata


def ancestors(metadata: TableMetadata, snapshot_id: SnapshotId | None) -> Iterator[Snapshot]:
    """Yield a snapshot, its parent and so on, as far back as the table knows them."""
    by_id = metadata.snapshots_by_id
    seen: set[SnapshotId] = set()
    while snapshot_id is not None and snapshot_id not in seen:
        snapshot = by_id.get(snapshot_id)
        if snapshot is None:
            return
        yield snapshot
        # A snapshot that descends from itself must not make us run for ever.
        seen.add(snapshot_id)
        snapshot_id = snapshot.parent_snapshot_id


def is_ancestor(metadata: TableMetadata, ancestor_id: SnapshotId, snapshot_id: SnapshotId | None) -> bool:
    """Return whether a snapshot is another one, or one of its ancestors."""
    return any(snapshot.snapshot_id == ancestor_id for snapshot in ancestors(metadata, snapshot_id))


def branches_by_snapshot(metadata: TableMetadata) -> Mapping[SnapshotId, Sequence[str]]:
    """Return, for each snapshot that is on a branch, the names of those branches."""
    heads: dict[SnapshotId, list[str]] = {}
    for name, ref in metadata.snapshot_refs.items():
        if ref.is_branch:
            heads.setdefault(ref.snapshot_id, []).append(name)
    children = _children(metadata, heads)
    order = {name: place for place, name in enumerate(metadata.snapshot_refs)}
    found: dict[SnapshotId, Sequence[str]] = {}
    ready = [snapshot_id for snapshot_id, count in children.items() if not count]
    above: dict[SnapshotId, list[Sequence[str]]] = {}
    while ready:
        snapshot_id = ready.pop()
        groups = above.pop(snapshot_id, [])
        if snapshot_id in heads:
            groups.append(heads[snapshot_id])
        # Mostly there is one child and no head, and the names are those of the child.
        names = groups[0] if len(groups) == 1 else sorted({*chain(*groups)}, key=order.__getitem__)
        found[snapshot_id] = names
        parent_id = metadata.snapshots_by_id[snapshot_id].parent_snapshot_id
        if parent_id is not None and parent_id in children:
            above.setdefault(parent_id, []).append(names)
            children[parent_id] -= 1
            if not children[parent_id]:
                ready.append(parent_id)
    is_tree = len(found) == len(children) and not any(children.values())
    return found if is_tree else _by_walking(metadata)  # some descend from themselves


def _children(metadata: TableMetadata, heads: Iterable[SnapshotId]) -> dict[SnapshotId, int]:
    """Return, for each snapshot that is on a branch, how many of its children are on one."""
    found: dict[SnapshotId, int] = {}
    for head_id in heads:
        for snapshot in ancestors(metadata, head_id):
            if snapshot.snapshot_id in found:
                found[snapshot.snapshot_id] += snapshot.snapshot_id != head_id
                break
            found[snapshot.snapshot_id] = int(snapshot.snapshot_id != head_id)
    return found


def _by_walking(metadata: TableMetadata) -> dict[SnapshotId, list[str]]:
    found: dict[SnapshotId, list[str]] = {}
    for name, ref in metadata.snapshot_refs.items():
        if ref.is_branch:
            for snapshot in ancestors(metadata, ref.snapshot_id):
                found.setdefault(snapshot.snapshot_id, []).append(name)
    return found


def refs_by_snapshot(metadata: TableMetadata) -> dict[SnapshotId, list[str]]:
    """Return, for each snapshot that has any, the branches and tags that name it."""
    found: dict[SnapshotId, list[str]] = {}
    for name, ref in metadata.snapshot_refs.items():
        found.setdefault(ref.snapshot_id, []).append(name)
    return found
