"""The difference of two states of a table: two snapshots, or two versions of its metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.listings import Listing, Page
from app.catalog.context.places.locations import check_location
from app.catalog.history import numbers_in, snapshot_named
from app.catalog.manifests.table_manifests import TableManifests
from app.database.pointers.pointer import Pointer
from app.engine.diff.file_diff import FileDiff, PartitionChange, PartitionTotals, file_diff
from app.engine.diff.metadata_diff import MetadataDiff, metadata_diff
from app.engine.diff.schema_changes import SchemaChange, schema_changes
from app.engine.model.ancestry import ancestors
from app.engine.model.files.manifests import ManifestEntry
from app.engine.model.files.partition_values import PartitionValues
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import NO_SNAPSHOT, Location, SnapshotId
from app.engine.model.schema import Schema
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.errors import InvalidPageToken, MetadataFileMissing, NotFound
from app.formats.metadata.names import number_of

VERSION_PREFIX = "metadata:"
_METADATA_NAME = re.compile(r"\.metadata\.json(\.gz)?$")

Relation = Literal["same", "descendant", "ancestor", "diverged"]


@dataclass(frozen=True, slots=True)
class State:
    """One end of a diff. `metadata` and `location` are there only if a version of the metadata was asked for."""

    snapshot: Snapshot | None
    schema: Schema
    metadata: TableMetadata | None = None
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that was added or removed."""

    kind: Literal["added", "removed"]
    entry: ManifestEntry


@dataclass(frozen=True, slots=True)
class TableDiff:
    """The difference of two states; a page of its files, and on the first page everything else."""

    before: State
    after: State
    relation: Relation | None
    """How the two snapshots are related; None where that is not known, as ancestors have expired."""
    common_ancestor: SnapshotId | None
    between: Sequence[SnapshotId]
    """The snapshots that lead from a snapshot to its descendant, oldest first."""
    totals: PartitionTotals
    partitions: Sequence[PartitionChange]
    schema: Sequence[SchemaChange]
    metadata: MetadataDiff | None
    files: Listing[ChangedFile]
    values: PartitionValues


def load_diff(
    catalog: Catalog,
    identifier: TableIdentifier,
    before: str | None,
    after: str | None,
    page: Page,
) -> TableDiff:
    """Return the difference of two states of a table.

    A state is a snapshot's id, the name of a branch or tag, `metadata:<number>`, or the location of a metadata
    file that this table has or had. Without `after` it is the table as it is; without `before` it is what came
    before `after`.

    Raises:
        NoSuchTable: no table has this name.
        NoSuchSnapshot: a snapshot, branch or tag does not exist.
        NotFound: no such version of the metadata is known.
        InvalidPageToken: a branch has moved since the page before was read.
        InvalidLocation: a metadata file or a manifest is outside the warehouse.
        MetadataFileMissing: a metadata file is gone.
        CorruptMetadata: a file cannot be read.
        FileMissing: a manifest is gone.
        FilesUnavailable: the store does not answer.
    """
    catalog.permit("load_diff", identifier)
    pointer, current = catalog.read_now(TABLES, identifier)
    versions = _Versions(catalog, pointer, current)
    later = (
        State(current.current_snapshot, current.current_schema) if after is None else versions.state(after)
    )
    earlier = versions.before(later) if before is None else versions.state(before)
    ends = f"{_id_of(earlier)} {_id_of(later)}"
    start = _start_of(page, ends)
    diff = file_diff(TableManifests(catalog, current), earlier.snapshot, later.snapshot)
    both = (
        metadata_diff(earlier.metadata, later.metadata)
        if earlier.metadata is not None and later.metadata is not None
        else None
    )
    kinship = _kinship(
        earlier.snapshot, earlier.metadata or current, later.snapshot, later.metadata or current
    )
    is_first = page.after is None
    found = TableDiff(
        before=earlier,
        after=later,
        relation=kinship.relation,
        common_ancestor=kinship.common_ancestor,
        between=kinship.between,
        totals=diff.totals(),
        partitions=diff.by_partition() if is_first else (),
        schema=schema_changes(earlier.schema, later.schema),
        metadata=both,
        files=_page_of(diff, page, start, ends),
        values=PartitionValues(current),
    )
    diff.let_go()
    return found


def _id_of(state: State) -> SnapshotId | None:
    return state.snapshot.snapshot_id if state.snapshot else None


def _start_of(page: Page, ends: str) -> int:
    """Return the place of a page's first file; refuse it if a branch has moved since."""
    if page.after is None:
        return 0
    start, _, of_ends = page.after.partition(" ")
    if of_ends != ends:
        raise InvalidPageToken(page.after)
    return numbers_in(start, 1)[0]


def _page_of(diff: FileDiff, page: Page, start: int, ends: str) -> Listing[ChangedFile]:
    all_files = len(diff.added) + len(diff.removed)
    end = all_files if page.limit is None else start + page.limit
    first_removed = len(diff.added)
    changes = [
        *(ChangedFile("added", entry) for entry in diff.added[start:end]),
        *(
            ChangedFile("removed", entry)
            for entry in diff.removed[max(0, start - first_removed) : max(0, end - first_removed)]
        ),
    ]
    return Listing(changes, f"{end} {ends}" if end < all_files else None)


@dataclass(frozen=True, slots=True)
class _Kinship:
    relation: Relation | None
    common_ancestor: SnapshotId | None
    between: Sequence[SnapshotId]


def _kinship(
    before: Snapshot | None, of_before: TableMetadata, after: Snapshot | None, of_after: TableMetadata
) -> _Kinship:
    """Return how two snapshots are related, by the snapshots that their own metadata still has."""
    if before is None or after is None:
        if before is after:
            return _Kinship("same", None, ())
        ids = [item.snapshot_id for item in ancestors(of_after, after.snapshot_id)] if after else []
        return _Kinship("ancestor" if after is None else "descendant", None, ids[::-1])
    one, other = before.snapshot_id, after.snapshot_id
    if one == other:
        return _Kinship("same", one, ())
    line_of_one, line_of_other = _line(of_before, one), _line(of_after, other)
    if one in line_of_other:
        return _Kinship("descendant", one, line_of_other[: line_of_other.index(one)][::-1])
    if other in line_of_one:
        return _Kinship("ancestor", other, ())
    known = set(line_of_one)
    shared = next((item for item in line_of_other if item in known), None)
    # Where ancestors have expired, they may have been shared.
    is_cut = (
        line_of_one[-1] not in of_before.snapshots_by_id or line_of_other[-1] not in of_after.snapshots_by_id
    )
    return _Kinship(None if shared is None and is_cut else "diverged", shared, ())


def _line(metadata: TableMetadata, snapshot_id: SnapshotId) -> list[SnapshotId]:
    """Return a snapshot and its ancestors, the newest first; the last one may have expired."""
    line = list(ancestors(metadata, snapshot_id))
    ids = [item.snapshot_id for item in line]
    last = line[-1].parent_snapshot_id
    # A snapshot may descend from itself.
    return ids if last is None or last in (NO_SNAPSHOT, *ids) else [*ids, last]


class _Versions:
    """The states of one table, by the texts that name them."""

    def __init__(self, catalog: Catalog, pointer: Pointer, current: TableMetadata) -> None:
        self._catalog = catalog
        self._pointer = pointer
        self._current = current

    def state(self, text: str) -> State:
        """Return the state that is meant."""
        if text.startswith(VERSION_PREFIX):
            return self._version(self._numbered(text.removeprefix(VERSION_PREFIX)))
        if _METADATA_NAME.search(text):
            # Only files of this table are read: a location is not a way to look into others.
            if all(location != text for location in self._locations()):
                raise NotFound(f"No version of {self._pointer.identifier} is known at {text}")
            return self._version(Location(text))
        snapshot = snapshot_named(self._current, text)
        return State(snapshot, self._current.schema_of(snapshot))

    def before(self, later: State) -> State:
        """Return the state that came before: the metadata file before, or the snapshot's parent."""
        if later.metadata is not None:
            log = later.metadata.metadata_log
            if not log:
                raise NotFound(f"No version of {self._pointer.identifier} is known before {later.location}")
            return self._version(log[-1].metadata_file)
        parent_id = later.snapshot.parent_snapshot_id if later.snapshot else None
        if parent_id is None or parent_id == NO_SNAPSHOT:
            return State(None, later.schema)
        parent = snapshot_named(self._current, str(parent_id))
        return State(parent, self._current.schema_of(parent))

    def _version(self, location: Location) -> State:
        if location == self._pointer.metadata_location:
            metadata = self._current
        else:
            # What was registered may have any file in its log.
            check_location(self._catalog, location, "metadata file")
            try:
                metadata = self._catalog.read_file(
                    TABLES, location, self._pointer.uuid, self._pointer.registration
                )
            except MetadataFileMissing:
                # Another table may have been registered over this one, or it had no uuid once.
                metadata = self._catalog.read_file(TABLES, location)
        return State(metadata.current_snapshot, metadata.current_schema, metadata, location)

    def _numbered(self, text: str) -> Location:
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None
        for location in self._locations():
            if number is not None and number_of(location) == number:
                return location
        raise NotFound(f"No version {text[:100]} of {self._pointer.identifier} is known")

    def _locations(self) -> Iterator[Location]:
        """Yield where the table's metadata is and was, newest first; some may come twice."""
        yield self._pointer.metadata_location
        yield from (entry.metadata_file for entry in reversed(self._current.metadata_log))
        before: int | None = None
        while events := self._catalog.shown_pointers.history(self._pointer.id, before, 200):
            yield from (event.location for event in events if event.location is not None)
            before = events[-1].sequence
