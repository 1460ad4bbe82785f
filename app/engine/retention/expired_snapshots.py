"""Which snapshots and refs a table may expire, by its own settings and by request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

from app.engine.model.document import MAX_LONG
from app.engine.model.files.manifests import ManifestSource
from app.engine.model.files.partition_values import schema_with_sources
from app.engine.model.ids import SchemaId, SnapshotId, SpecId
from app.engine.model.refs import MAIN_BRANCH, SnapshotRef
from app.engine.model.settings.properties import allows_deletes, int_property
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.errors import ExpiryRefused

MAX_SNAPSHOT_AGE = "history.expire.max-snapshot-age-ms"
MIN_SNAPSHOTS = "history.expire.min-snapshots-to-keep"
MAX_REF_AGE = "history.expire.max-ref-age-ms"
DEFAULT_MAX_SNAPSHOT_AGE_MS = 5 * 24 * 3_600_000
DEFAULT_MIN_SNAPSHOTS = 1


@dataclass(frozen=True, slots=True)
class ExpiryWish:
    """What a request asks for; the table's own settings are the defaults."""

    older_than_ms: int | None = None
    """Epoch milliseconds: older snapshots may expire, whatever the table's settings say."""
    retain_last: int | None = None
    """The least number of snapshots to keep on each branch, unless the branch has its own."""
    snapshot_ids: Collection[SnapshotId] = ()
    """Snapshots that expire whatever their age; what the table does not have is passed over."""
    clean_expired_metadata: bool = False
    """Whether to remove specs and schemas that only expired snapshots used."""


@dataclass(frozen=True, slots=True)
class Expiry:
    """What is removed: snapshots in the metadata's order, refs, unused specs and schemas."""

    snapshots: tuple[Snapshot, ...]
    ref_names: tuple[str, ...]
    spec_ids: tuple[SpecId, ...] = ()
    schema_ids: tuple[SchemaId, ...] = ()


@dataclass(slots=True)
class _Walks:
    """What the branches that descend from a snapshot keep of it and its ancestors.

    Each keeps a number of them, and then all since a moment.
    """

    steps: int = 0
    by_number: list[tuple[int, int]] = field(default_factory=list)
    """Of each branch that is owed a number, the steps until it has them, and its moment; a heap."""
    since_ms: int | None = None
    """The first moment of the other branches."""

    def add(self, number: int, since_ms: int) -> None:
        heappush(self.by_number, (self.steps + number, since_ms))

    def keep(self, timestamp_ms: int) -> bool:
        """Return whether a branch keeps the snapshot they have come to, and end other walks."""
        while self.by_number and self.by_number[0][0] <= self.steps:
            self._go_on_since(heappop(self.by_number)[1])
        if self.since_ms is not None and timestamp_ms < self.since_ms:
            self.since_ms = None
        return self.since_ms is not None or bool(self.by_number)

    def joined(self, other: _Walks) -> _Walks:
        """Return the walks of both, which have come to the same snapshot."""
        if len(other.by_number) > len(self.by_number):
            return other.joined(self)
        for steps, since_ms in other.by_number:
            self.add(steps - other.steps, since_ms)
        if other.since_ms is not None:
            self._go_on_since(other.since_ms)
        return self

    def _go_on_since(self, since_ms: int) -> None:
        self.since_ms = since_ms if self.since_ms is None else min(self.since_ms, since_ms)


def plan_expiry(
    metadata: TableMetadata, wish: ExpiryWish, now_ms: int, source: ManifestSource | None = None
) -> Expiry:
    """Return what a table may remove now.

    It keeps the head of each ref that is not too old, and the last snapshots of each such branch, by number or by
    age. It also keeps young snapshots that no ref reaches: they may be staged.

    Args:
        source: needed to remove unused specs: the manifests of all remaining snapshots are read.

    Raises:
        ExpiryRefused: garbage collection is off, or a ref names a snapshot that the request wants removed.
        InvalidUpdate: a retention setting of the table is not a number.

    Spec: #snapshot-retention-policy
    """
    check_collection_is_on(metadata)
    if wish.retain_last is not None and wish.retain_last < 1:
        raise ExpiryRefused(
            f"Number of snapshots to retain must be at least 1, cannot be: {wish.retain_last}"
        )
    refs = _retained_refs(metadata, now_ms)
    # A set of ids that were chosen to do harm takes seconds.
    wanted = {snapshot_id for snapshot_id in wish.snapshot_ids if snapshot_id in metadata.snapshots_by_id}
    _check_unnamed(wanted, refs)
    kept = _kept_ids(metadata, wish, refs, now_ms) - wanted
    gone = tuple(snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id not in kept)
    ref_names = tuple(name for name in metadata.snapshot_refs if name not in refs)
    if not wish.clean_expired_metadata or source is None:
        return Expiry(gone, ref_names)
    staying = [snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id in kept]
    specs = _unused_specs(metadata, staying, source)
    return Expiry(gone, ref_names, specs, _unused_schemas(metadata, staying, specs))


def check_collection_is_on(metadata: TableMetadata) -> None:
    """Check that a table's settings allow files to be deleted.

    Raises:
        ExpiryRefused: gc.enabled is false.
    """
    if not allows_deletes(metadata.properties):
        raise ExpiryRefused(
            "Cannot expire snapshots: GC is disabled (gc.enabled is false), so deleting files may corrupt other tables"
        )


def _retained_refs(metadata: TableMetadata, now_ms: int) -> dict[str, SnapshotRef]:
    default_max_age_ms = int_property(metadata.properties, MAX_REF_AGE, MAX_LONG)
    retained = {}
    for name, ref in metadata.snapshot_refs.items():
        head = metadata.snapshots_by_id.get(ref.snapshot_id)
        max_age_ms = default_max_age_ms if ref.max_ref_age_ms is None else ref.max_ref_age_ms
        if name == MAIN_BRANCH or (head is not None and now_ms - head.timestamp_ms <= max_age_ms):
            retained[name] = ref
    return retained


def _check_unnamed(snapshot_ids: Collection[SnapshotId], refs: Mapping[str, SnapshotRef]) -> None:
    named = [ref.snapshot_id for ref in refs.values() if ref.snapshot_id in snapshot_ids]
    if named:
        first = min(named)
        names = sorted(name for name, ref in refs.items() if ref.snapshot_id == first)
        raise ExpiryRefused(f"Cannot expire {first}. Still referenced by refs: [{', '.join(names)}]")


def _kept_ids(
    metadata: TableMetadata, wish: ExpiryWish, refs: Mapping[str, SnapshotRef], now_ms: int
) -> set[SnapshotId]:
    """Return the snapshots to keep, in one pass from children to parents for all branches."""
    properties = metadata.properties
    since_ms = wish.older_than_ms
    if since_ms is None:
        since_ms = now_ms - int_property(properties, MAX_SNAPSHOT_AGE, DEFAULT_MAX_SNAPSHOT_AGE_MS)
    least = wish.retain_last
    if least is None:
        least = int_property(properties, MIN_SNAPSHOTS, DEFAULT_MIN_SNAPSHOTS)

    walks: dict[SnapshotId, _Walks] = {}
    reached: set[SnapshotId] = set()
    kept = {ref.snapshot_id for ref in refs.values()}
    named = set(kept)
    for ref in refs.values():
        if ref.is_branch:
            reached.add(ref.snapshot_id)
            number = least if ref.min_snapshots_to_keep is None else ref.min_snapshots_to_keep
            since = since_ms if ref.max_snapshot_age_ms is None else now_ms - ref.max_snapshot_age_ms
            walks.setdefault(ref.snapshot_id, _Walks()).add(number, since)
    ordered = _children_first(metadata)
    for snapshot in ordered:
        snapshot_id, parent_id = snapshot.snapshot_id, snapshot.parent_snapshot_id
        if snapshot_id in reached and parent_id is not None:
            reached.add(parent_id)
        here = walks.pop(snapshot_id, None)
        if here is not None and here.keep(snapshot.timestamp_ms):
            kept.add(snapshot_id)
            here.steps += 1
            if parent_id is not None:
                there = walks.get(parent_id)
                walks[parent_id] = here if there is None else there.joined(here)
        if snapshot_id not in reached and snapshot_id not in named and snapshot.timestamp_ms >= since_ms:
            kept.add(snapshot_id)
    if len(ordered) < len(metadata.snapshots):
        # Snapshots that descend from themselves are kept: such metadata is broken.
        kept |= metadata.snapshots_by_id.keys() - {snapshot.snapshot_id for snapshot in ordered}
    return kept


def _children_first(metadata: TableMetadata) -> list[Snapshot]:
    """Return the snapshots, each before its parent, without those that descend from themselves."""
    by_id = metadata.snapshots_by_id
    children = Counter(snapshot.parent_snapshot_id for snapshot in metadata.snapshots)
    ordered = [snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id not in children]
    # The list is also the queue.
    for snapshot in ordered:
        parent = by_id.get(snapshot.parent_snapshot_id) if snapshot.parent_snapshot_id is not None else None
        if parent is not None:
            children[parent.snapshot_id] -= 1
            if not children[parent.snapshot_id]:
                ordered.append(parent)
    return ordered


def _unused_specs(
    metadata: TableMetadata, staying: Iterable[Snapshot], source: ManifestSource
) -> tuple[SpecId, ...]:
    used = {metadata.default_spec_id}
    candidates = {spec.spec_id for spec in metadata.partition_specs} - used
    for snapshot in staying:
        if candidates <= used:
            break
        used |= {manifest.partition_spec_id for manifest in source.manifests(snapshot)}
    return tuple(spec.spec_id for spec in metadata.partition_specs if spec.spec_id not in used)


def _unused_schemas(
    metadata: TableMetadata, staying: Iterable[Snapshot], unused_specs: Collection[SpecId]
) -> tuple[SchemaId, ...]:
    used = {metadata.current_schema_id, *(snapshot.schema_id for snapshot in staying)}
    # Where a source column was dropped, an old schema alone says of which type its partition values are.
    used |= {
        schema_with_sources(metadata, spec).schema_id
        for spec in metadata.partition_specs
        if spec.spec_id not in unused_specs
    }
    return tuple(schema.schema_id for schema in metadata.schemas if schema.schema_id not in used)
