"""The history of a table: its snapshots, their files, and the events of its pointer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.listings import Listing, Page
from app.catalog.context.rows import PointerEvent
from app.catalog.manifests.table_manifests import TableManifests
from app.engine.branches.ref_changes import snapshot_of
from app.engine.expressions.expressions import ALWAYS_TRUE, Expression
from app.engine.model.ancestry import branch_finder, refs_by_snapshot
from app.engine.model.document import MAX_LONG
from app.engine.model.files.manifests import ManifestEntry
from app.engine.model.files.partition_values import PartitionValues
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import SnapshotId
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.engine.selection.files import FileSelection, RowFilter
from app.errors import InvalidPageToken, NoSuchRef, NoSuchSnapshot

MOST_IN_NAMES = 4 << 20
"""A page of snapshots ends behind so many characters in names of branches, each of which may have all snapshots."""
_NUMBER = re.compile(r"-?[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class SnapshotFacts:
    """A snapshot, the refs that name it, and the branches that it is on."""

    snapshot: Snapshot
    refs: Sequence[str]
    branches: Sequence[str]
    is_current: bool


@dataclass(frozen=True, slots=True)
class Reign:
    """When a snapshot was current; `until_ms` None if it still is."""

    snapshot_id: SnapshotId
    since_ms: int
    until_ms: int | None


@dataclass(frozen=True, slots=True)
class History:
    """A page of a table's events, newest first, and on the first page what was current when."""

    reigns: Sequence[Reign]
    events: Listing[PointerEvent]


@dataclass(frozen=True, slots=True)
class FilePage:
    """A page of a snapshot's files, and how to show their partitions."""

    snapshot: Snapshot
    entries: Listing[ManifestEntry]
    partitions: PartitionValues


def list_snapshots(catalog: Catalog, identifier: TableIdentifier, page: Page) -> Listing[SnapshotFacts]:
    """Return a page of a table's snapshots, newest first.

    Raises:
        NoSuchTable: no table has this name.
    """
    catalog.permit("list_snapshots", identifier)
    _, metadata = catalog.read_now(TABLES, identifier)
    newest_first = sorted(metadata.snapshots, key=_age, reverse=True)
    if page.after is not None:
        after = numbers_in(page.after, 3)
        newest_first = [snapshot for snapshot in newest_first if _age(snapshot) < after]
    shown: list[SnapshotFacts] = []
    in_names = 0
    for facts in map(_facts_of(metadata), newest_first):
        if len(shown) == page.limit or in_names >= MOST_IN_NAMES:
            return Listing(shown, " ".join(map(str, _age(shown[-1].snapshot))))
        shown.append(facts)
        in_names += sum(map(len, facts.branches))
    return Listing(shown, None)


def load_snapshot(catalog: Catalog, identifier: TableIdentifier, wanted: str) -> SnapshotFacts:
    """Return one snapshot, by its id or by the name of a branch or tag.

    Raises:
        NoSuchTable: no table has this name.
        NoSuchSnapshot: the table does not have it.
    """
    catalog.permit("load_snapshot", identifier)
    _, metadata = catalog.read_now(TABLES, identifier)
    return _facts_of(metadata)(snapshot_named(metadata, wanted))


def snapshot_named(metadata: TableMetadata, wanted: str) -> Snapshot:
    """Return the snapshot of an id or, if no snapshot has it, of a branch or tag of this name.

    Raises:
        NoSuchSnapshot: the table has neither.
    """
    try:
        return snapshot_of(metadata, wanted)
    except NoSuchRef as error:
        raise NoSuchSnapshot(wanted) from error


def _facts_of(metadata: TableMetadata) -> Callable[[Snapshot], SnapshotFacts]:
    refs, branches_of = refs_by_snapshot(metadata), branch_finder(metadata)

    def facts(snapshot: Snapshot) -> SnapshotFacts:
        snapshot_id = snapshot.snapshot_id
        is_current = snapshot_id == metadata.current_snapshot_id
        return SnapshotFacts(snapshot, refs.get(snapshot_id, ()), branches_of(snapshot_id), is_current)

    return facts


def _age(snapshot: Snapshot) -> tuple[int, int, int]:
    return snapshot.sequence, snapshot.timestamp_ms, snapshot.snapshot_id


def numbers_in(place: str, count: int) -> tuple[int, ...]:
    """Return the numbers that a place in a listing consists of.

    Raises:
        InvalidPageToken: this server did not make the place.
    """
    pieces = place.split(" ")
    if len(pieces) != count or not all(_NUMBER.fullmatch(piece) for piece in pieces):
        raise InvalidPageToken(place)
    numbers = tuple(map(int, pieces))
    if any(abs(number) > MAX_LONG for number in numbers):
        raise InvalidPageToken(place)
    return numbers


def list_files(
    catalog: Catalog,
    identifier: TableIdentifier,
    wanted: str,
    page: Page,
    filter_: Expression = ALWAYS_TRUE,
) -> FilePage:
    """Return a page of a snapshot's live files that may match a filter, in manifest order.

    The filter is read with the columns that the snapshot was written with.

    A place in the listing is `<manifest> <entry>`, both counted from zero: neither ever changes.

    Raises:
        NoSuchTable: no table has this name.
        NoSuchSnapshot: the table does not have it.
        InvalidFilter: the filter does not fit the snapshot's columns.
        InvalidLocation, CorruptMetadata, FileMissing, FilesUnavailable: a manifest cannot be read.
    """
    catalog.permit("list_files", identifier)
    _, metadata = catalog.read_now(TABLES, identifier)
    snapshot = snapshot_named(metadata, wanted)
    rows = RowFilter.of(filter_, metadata.schema_of(snapshot))
    selection = FileSelection(rows, metadata.partition_specs)
    source = TableManifests(catalog, metadata)
    found = list(islice(_places(source, snapshot, page.after, selection), page.read_limit))
    shown = found if page.limit is None else found[: page.limit]
    next_after = shown[-1][0] if len(found) > len(shown) else None
    return FilePage(snapshot, Listing([entry for _, entry in shown], next_after), PartitionValues(metadata))


def _places(
    source: TableManifests, snapshot: Snapshot, after: str | None, selection: FileSelection
) -> Iterator[tuple[str, ManifestEntry]]:
    first_manifest, first_entry = (0, 0) if after is None else numbers_in(after, 2)
    for number, manifest in enumerate(source.manifests(snapshot)):
        if number < first_manifest or not selection.may_hold_live(manifest):
            continue
        # Where the page begins, the entries up to its place are behind us.
        last_seen = first_entry if after is not None and number == first_manifest else -1
        for position, entry in selection.placed(manifest, source.entries(manifest), last_seen):
            yield f"{number} {position}", entry


def load_history(catalog: Catalog, identifier: TableIdentifier, page: Page) -> History:
    """Return which snapshots were current when, and a page of the pointer's events.

    Raises:
        NoSuchTable: no table has this name.
    """
    catalog.permit("load_history", identifier)
    pointer, metadata = catalog.read_now(TABLES, identifier)
    before = None if page.after is None else numbers_in(page.after, 1)[0]
    rows = catalog.shown_pointers.history(pointer.id, before, page.read_limit)
    shown = rows if page.limit is None else rows[: page.limit]
    next_after = str(shown[-1].sequence) if len(rows) > len(shown) else None
    reigns = _reigns(metadata) if page.after is None else []
    return History(reigns, Listing(shown, next_after))


def _reigns(metadata: TableMetadata) -> list[Reign]:
    """Return which snapshots were current when, newest first, from the snapshot log."""
    found: list[Reign] = []
    until_ms: int | None = None
    is_emptied = metadata.current_snapshot is None
    for entry in reversed(metadata.snapshot_log):
        # Without main no snapshot is current, though the log still ends with the last one.
        ended_ms = metadata.last_updated_ms if is_emptied and not found else until_ms
        found.append(Reign(entry.snapshot_id, entry.timestamp_ms, ended_ms))
        until_ms = entry.timestamp_ms
    return found
