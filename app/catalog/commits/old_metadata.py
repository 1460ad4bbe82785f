"""Deleting metadata files that the metadata log has let go, for tables that ask for it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from app.catalog.commits.intentions import Base
from app.catalog.context.catalog import Catalog
from app.catalog.context.deletable import LEASE_MS, Owner, deletable
from app.catalog.context.kinds import M
from app.catalog.context.places.table_places import spellings_of
from app.catalog.context.property_layers import layers_of
from app.database.pointers.pointer import Pointer
from app.engine.model.ids import Location
from app.engine.model.settings.properties import DELETE_AFTER_COMMIT, bool_property
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.view_metadata import ViewMetadata
from app.engine.properties.lookup import effective_property
from app.engine.properties.own_properties import AS_OF_METADATA_KEEP
from app.engine.retention.reachability import statistics_of
from app.errors import CommitFailed, IcetowerError
from app.fileio.locations import place_of

log = logging.getLogger(__name__)

_FEW: Final = 8
"""So many files are deleted before it is asked again whether they may go; mostly a commit lets one go."""


def forget_old_metadata(catalog: Catalog, base: Base[M], after: TableMetadata | ViewMetadata) -> None:
    """Delete metadata files that a landed commit took out of the log; failures are only logged."""
    before = base.metadata
    if base.seen is None or not isinstance(before, TableMetadata) or not isinstance(after, TableMetadata):
        return
    if not bool_property(after.properties, DELETE_AFTER_COMMIT, default=False):
        return
    # The table's own files that a registered log may name: they are in use, though no log entry is left.
    in_use = {place_of(location) for location in _named_by(after) if _is_metadata(location.rstrip("/"))}
    try:
        gone = filter(_is_metadata, sorted(_gone(catalog, base.seen, before)))
        doomed = [location for location in gone if place_of(location) not in in_use]
        owner = Owner.of(after.uuid, base.seen.id, before, after)
        # Far away to delete them takes seconds: what is registered meanwhile stays.
        for start in range(0, len(doomed), _FEW):
            for location in deletable(catalog, owner, doomed[start : start + _FEW]):
                catalog.files.delete(location)
    except IcetowerError as error:
        log.warning("could not delete old metadata files of %s: %s", after.location, error)


def check_not_let_go(
    catalog: Catalog,
    seen: Pointer,
    now: TableMetadata | ViewMetadata,
    location: Location,
    then: TableMetadata | ViewMetadata,
) -> None:
    """Check that no commit is just deleting a file that is to be registered over its table.

    Deletions by commits have no entry in the queue. One that has let the file go is seen here, and one that comes later
    moves the pointer: then this is asked again.

    Args:
        catalog: the table's warehouse.
        seen: the pointer that is to move to the file.
        now: the metadata that it has.
        location: the file.
        then: what is in it.

    Raises:
        CommitFailed: it may be.
    """
    if (
        not isinstance(now, TableMetadata)
        or not isinstance(then, TableMetadata)
        or not bool_property(now.properties, DELETE_AFTER_COMMIT, default=False)
        or now.last_updated_ms < catalog.now_ms() - LEASE_MS
        or any(place_of(stays) == place_of(location) for stays in (seen.metadata_location, *_logged(now)))
    ):
        return
    keep_ms, past = _keep_ms(catalog, seen, now), catalog.server.past
    spellings = list(map(Location, spellings_of(location)))
    if keep_ms is None:
        return
    # What the table has never had is no commit's to delete. What it had before its history begins is not known.
    history_ms = catalog.rules.history_ms
    is_in_history = not history_ms or then.last_updated_ms > catalog.now_ms() - history_ms
    if is_in_history and not past.replaced_since(seen.id, spellings, 0):
        return
    if keep_ms and past.replaced_since(seen.id, spellings, catalog.now_ms() - keep_ms):
        return  # It is kept for reading the past.
    raise CommitFailed(
        f"Cannot register {location}: the metadata log of {seen.identifier} has let it go, and a commit may be "
        f"deleting it just now ({DELETE_AFTER_COMMIT}). Nothing was changed. Try again ten minutes after the table's "
        "last commit: if the file is there then, it stays"
    )


def _logged(metadata: TableMetadata) -> Iterator[Location]:
    return (entry.metadata_file for entry in metadata.metadata_log)


def _gone(catalog: Catalog, seen: Pointer, before: TableMetadata) -> set[Location]:
    """Return which metadata files go with this commit, if its log does not name them.

    Normally those that the log has named until now. Where they are kept for reading the table as it was, those that
    were replaced so long ago: each commit takes what the time since the last one has added, and what leaves the log
    late.
    """
    logged, keep_ms = before.metadata_log, _keep_ms(catalog, seen, before)
    if keep_ms is None:
        return set()  # Nothing says for how long: the commit has landed, and the files stay.
    if not keep_ms:
        return {entry.metadata_file for entry in logged}
    until_ms, past = catalog.now_ms() - keep_ms, catalog.server.past
    gone = set(past.replaced(seen.id, before.last_updated_ms - keep_ms, until_ms))
    # An entry has the time of its own file, so that of the next one is when it was replaced.
    replaced_ms = [*(entry.timestamp_ms for entry in logged[1:]), before.last_updated_ms]
    gone |= {
        entry.metadata_file for entry, at_ms in zip(logged, replaced_ms, strict=False) if at_ms <= until_ms
    }
    if seen.registration:
        # Only a registration can set a table back to an earlier file, which counts from the last time it was replaced.
        gone -= past.replaced_since(seen.id, gone, until_ms)
    return gone


def _keep_ms(catalog: Catalog, seen: Pointer, metadata: TableMetadata) -> int | None:
    """Return how long files stay for reading the past; None if what says it makes no sense."""
    layers = layers_of(catalog, seen.identifier.namespace, metadata.properties)
    keeping = effective_property(layers, AS_OF_METADATA_KEEP)
    return int(keeping.value or 0) if keeping.flaw is None else None


def _is_metadata(location: str) -> bool:
    return location.endswith((".metadata.json", ".metadata.json.gz"))


def _named_by(metadata: TableMetadata) -> Iterator[Location]:
    yield from _logged(metadata)
    for statistics in statistics_of(metadata):
        yield statistics.location
    for snapshot in metadata.snapshots:
        if snapshot.manifest_list is not None:
            yield snapshot.manifest_list
