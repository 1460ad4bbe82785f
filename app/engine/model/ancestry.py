"""How snapshots descend from each other."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter

from app.engine.model.ids import SnapshotId
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata


def ancestors(metadata: TableMetadata, snapshot_id: SnapshotId | None) -> Iterator[Snapshot]:
    """Yield a snapshot, its parent and so on, as far back as the table knows them."""
    return _line(metadata.snapshots_by_id, snapshot_id)


def _line(by_id: Mapping[SnapshotId, Snapshot], snapshot_id: SnapshotId | None) -> Iterator[Snapshot]:
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


def branch_finder(metadata: TableMetadata) -> Callable[[SnapshotId], list[str]]:
    """Return a function that names the branches that a snapshot is on.

    It keeps no names: each of many branches may be one of very many snapshots.
    """
    spans = _spans(metadata.snapshots_by_id)
    heads = sorted(
        (spans[ref.snapshot_id].start, place, name)
        for place, (name, ref) in enumerate(metadata.snapshot_refs.items())
        if ref.is_branch and ref.snapshot_id in spans
    )
    starts = [start for start, _, _ in heads]

    def branches_of(snapshot_id: SnapshotId) -> list[str]:
        span = spans.get(snapshot_id, range(0))
        found = heads[bisect_left(starts, span.start) : bisect_left(starts, span.stop)]
        return [name for _, _, name in sorted(found, key=itemgetter(1))]

    return branches_of


class Descent:
    """How some snapshots descend from each other, found once for any number of questions."""

    def __init__(self, snapshots: Mapping[SnapshotId, Snapshot]) -> None:
        self.snapshots = snapshots
        self._spans = _spans(snapshots)
        oldest = sorted(self._spans, key=lambda snapshot_id: self._spans[snapshot_id].start)
        at = 0
        self._oldest: list[SnapshotId] = []
        while at < len(oldest):
            self._oldest.append(oldest[at])
            at = self._spans[oldest[at]].stop

    def is_ancestor(self, ancestor_id: SnapshotId, snapshot_id: SnapshotId) -> bool:
        """Return whether a snapshot is another one, or one of its ancestors."""
        return self._spans[snapshot_id].start in self._spans.get(ancestor_id, ())

    def oldest_ancestor(self, snapshot_id: SnapshotId) -> Snapshot:
        """Return the first of a snapshot's ancestors, or one of those that descend from themselves."""
        start = self._spans[snapshot_id].start
        place = bisect_right(self._oldest, start, key=lambda oldest: self._spans[oldest].start)
        return self.snapshots[self._oldest[place - 1]]


def _spans(by_id: Mapping[SnapshotId, Snapshot]) -> dict[SnapshotId, range]:
    """Return the places of each snapshot and its descendants in an order where they follow it."""
    children: dict[SnapshotId, list[SnapshotId]] = {}
    roots: list[SnapshotId] = []
    for snapshot_id, snapshot in by_id.items():
        parent_id = snapshot.parent_snapshot_id
        if parent_id is None or parent_id not in by_id:
            roots.append(snapshot_id)
        else:
            children.setdefault(parent_id, []).append(snapshot_id)
    places: dict[SnapshotId, int] = {}

    def place_descendants(waiting: list[SnapshotId]) -> None:
        while waiting:
            snapshot_id = waiting.pop()
            if snapshot_id not in places:
                places[snapshot_id] = len(places)
                waiting.extend(children.get(snapshot_id, ()))

    place_descendants(roots)
    circles = []
    for snapshot_id in by_id:
        if snapshot_id not in places:
            # Some of its ancestors descend from themselves, and all from each of those.
            circle = _circle(by_id, snapshot_id)
            circles.append(circle)
            place_descendants(circle[:1])
    ends: dict[SnapshotId, int] = {}
    for snapshot_id in reversed(places):
        end = ends.setdefault(snapshot_id, places[snapshot_id] + 1)
        parent_id = by_id[snapshot_id].parent_snapshot_id
        if parent_id is not None:
            ends[parent_id] = max(ends.get(parent_id, 0), end)
    spans = {snapshot_id: range(place, ends[snapshot_id]) for snapshot_id, place in places.items()}
    for circle in circles:
        spans.update(dict.fromkeys(circle, spans[circle[0]]))
    return spans


def _circle(by_id: Mapping[SnapshotId, Snapshot], snapshot_id: SnapshotId) -> list[SnapshotId]:
    """Return the ancestors of a snapshot that descend from themselves."""
    *_, last = _line(by_id, snapshot_id)
    return [snapshot.snapshot_id for snapshot in _line(by_id, last.snapshot_id)]


def refs_by_snapshot(metadata: TableMetadata) -> dict[SnapshotId, list[str]]:
    """Return, for each snapshot that has any, the branches and tags that name it."""
    found: dict[SnapshotId, list[str]] = {}
    for name, ref in metadata.snapshot_refs.items():
        found.setdefault(ref.snapshot_id, []).append(name)
    return found
