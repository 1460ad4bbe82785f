"""How healthy the tables of a warehouse are, without a look at manifests, worst first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Final

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.listings import Listing, Page
from app.catalog.history import numbers_in
from app.catalog.upkeep.table_health import (
    OVERVIEW_BYTES,
    TableHealth,
    flaw_of_specs,
    forks_of,
    listed_manifests,
    metadata_bytes,
    overview_key,
)
from app.database.deletions.file_deletions import WaitingDeletion
from app.database.pointers.pointer import Pointer, PointerKind
from app.engine.health.facts import MOST_WAITING, HealthFacts
from app.engine.health.findings import HealthFinding, badness, findings, unreadable
from app.engine.health.manifest_facts import manifest_facts
from app.engine.health.metadata_facts import metadata_facts, summary_totals
from app.engine.model.files.partition_values import PartitionValues
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.table_metadata import TableMetadata
from app.errors import GivenUp, IcetowerError, MetadataFileMissing, NoSuchTable

STRETCH: Final = 500
"""So many tables are looked at for one request, and ordered among themselves."""
_SIDE_BY_SIDE: Final = 8
_FIRST: Final = (-1_000_000, -1_000_000, -1_000_000, 0)
_UNREADABLE: Final = -1_000
"""Worse than any number of critical findings."""

_Rank = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class UnreadableTable:
    """A table that cannot be read, and why."""

    identifier: TableIdentifier
    findings: Sequence[HealthFinding]


def warehouse_health(catalog: Catalog, page: Page) -> Listing[TableHealth | UnreadableTable]:
    """Return a page of the tables of the warehouse, the worst first.

    The tables are looked at in stretches of `STRETCH`, in the order in which they were created; the worst first is the
    order within a stretch, and a page ends with it. A place in the listing is `<id> <rank>`: the last table before the
    stretch, and the rank of the last table on the page, so that a page is found again on any server. A table that is
    changed between two pages may be on both, or on neither.

    No manifest is read. What was found is kept by metadata file.

    Raises:
        InvalidPageToken: this server did not make the place.
        DatabaseUnavailable: the database does not answer.
    """
    catalog.permit("warehouse_health")
    before_id, after = 0, _FIRST
    if page.after is not None:
        before_id, *rank = numbers_in(page.after, 5)
        after = (rank[0], rank[1], rank[2], rank[3])
    pointers = catalog.pointers.list_pointers(catalog.warehouse.id, PointerKind.TABLE, before_id, STRETCH + 1)
    stretch = pointers[:STRETCH]
    ranked = sorted(
        ((_rank(pointer, found), found) for pointer, found in _looked_at(catalog, stretch)),
        key=lambda pair: pair[0],
    )
    left = [(rank, found) for rank, found in ranked if rank > after]
    shown = left if page.limit is None else left[: page.limit]
    next_after = None
    if len(left) > len(shown):
        next_after = _place(before_id, shown[-1][0])
    elif len(pointers) > STRETCH:
        next_after = _place(stretch[-1].id, _FIRST)
    return Listing([found for _, found in shown], next_after)


def waiting_deletions(catalog: Catalog) -> Sequence[WaitingDeletion]:
    """Return deletions of files that cannot go on, the oldest first.

    Raises:
        DatabaseUnavailable: the database does not answer.
    """
    catalog.permit("warehouse_health")
    if not catalog.has_rows:
        return ()
    return catalog.server.file_deletions.waiting(catalog.warehouse.id, MOST_WAITING)


def _place(before_id: int, rank: _Rank) -> str:
    return " ".join(map(str, (before_id, *rank)))


def _rank(pointer: Pointer, found: TableHealth | UnreadableTable) -> _Rank:
    if isinstance(found, UnreadableTable):
        return _UNREADABLE, 0, 0, pointer.id
    critical, warnings, infos = badness(found.findings)
    return -critical, -warnings, -infos, pointer.id


def _looked_at(
    catalog: Catalog, pointers: Sequence[Pointer]
) -> Iterator[tuple[Pointer, TableHealth | UnreadableTable]]:
    """Yield what is found of tables that are still there; several are looked at side by side."""
    under_way: deque[tuple[Pointer, Future[None], list[TableHealth | UnreadableTable]]] = deque()

    def start(pointer: Pointer) -> None:
        place: list[TableHealth | UnreadableTable] = []

        def look() -> None:
            try:
                place.append(_health(catalog, pointer))
            except NoSuchTable:
                pass  # It was dropped or renamed meanwhile.
            except GivenUp:
                raise
            except IcetowerError as error:
                place.append(UnreadableTable(pointer.identifier, [unreadable(str(error))]))

        under_way.append((pointer, catalog.server.side_work.start(look), place))

    def done() -> Iterator[tuple[Pointer, TableHealth | UnreadableTable]]:
        pointer, work, place = under_way.popleft()
        work.result()
        for found in place:
            yield pointer, found

    for pointer in pointers:
        start(pointer)
        if len(under_way) >= _SIDE_BY_SIDE:
            yield from done()
    while under_way:
        yield from done()


def _health(catalog: Catalog, pointer: Pointer) -> TableHealth:
    try:
        metadata = catalog.read(TABLES, pointer)
    except MetadataFileMissing:
        # As in `find_and_read`: a commit may have moved the pointer and deleted the file meanwhile.
        pointer, metadata = catalog.read_now(TABLES, pointer.identifier)
    facts = replace(_facts(catalog, pointer, metadata), looked_at_ms=catalog.now_ms())
    limits = catalog.rules.health_thresholds
    return TableHealth(pointer.identifier, facts, findings(facts, limits), PartitionValues(metadata))


def _facts(catalog: Catalog, pointer: Pointer, metadata: TableMetadata) -> HealthFacts:
    kept = catalog.server.table_overviews
    key = overview_key(catalog, pointer)
    facts = kept.find(key)
    if facts is None:
        snapshot = metadata.current_snapshot
        manifests = listed_manifests(catalog, metadata, snapshot)
        facts = HealthFacts(
            looked_at_ms=0,
            snapshot_id=None if snapshot is None else snapshot.snapshot_id,
            metadata=metadata_facts(metadata, snapshot, metadata_bytes(catalog, pointer)),
            manifests=manifest_facts(metadata, manifests),
            totals=summary_totals(snapshot),
            files=None,
            activity=None,
            unreadable=flaw_of_specs(metadata, manifests),
            forks=forks_of(catalog, pointer, metadata),
        )
        kept.put(key, facts, OVERVIEW_BYTES)
    return facts
