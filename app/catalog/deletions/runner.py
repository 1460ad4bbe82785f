"""Deleting groups of files, one after the other, while the entry in the queue is held."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import islice
from threading import Lock
from typing import TypeVar

from app.catalog.context.catalog import Catalog, own_catalog
from app.catalog.context.deletable import BATCH, LEASE_MS, Owner, deletable
from app.catalog.context.places.locations import is_allowed
from app.catalog.manifests.table_manifests import CheckedManifests
from app.database.connections.clock import steady_ns
from app.database.deletions.file_deletions import Deletion
from app.engine.model.files.manifests import ManifestEntry, ManifestFile
from app.engine.model.ids import Location
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.engine.retention.reachability import Unreachable
from app.errors import FilesUnavailable, IcetowerError, Unavailable

log = logging.getLogger(__name__)

_Result = TypeVar("_Result")
WORKERS = 8
_HELD_AGAIN_MS = LEASE_MS // 10
MOST_LOOKS = 12
"""How often in a row a deletion finds nothing at all, in about seven hours: all may be gone on purpose."""
_STEPS = {"expire": "expired", "purge": "purged"}


class PlanOutdated(Exception):
    """A deletion is not to go on as it was planned: planned anew, or ended by another worker."""


class Hold:
    """Holds an entry in the queue while work goes on that may take longer than a lease.

    Safe to use from many threads.
    """

    def __init__(self, catalog: Catalog, deletion: Deletion) -> None:
        """Begin with an entry that was leased just now."""
        self.deletion = deletion
        self._catalog = catalog
        self._held_ms = _steady_ms()
        self._must_be_unbroken = False
        self._lock = Lock()

    def before_a_look(self) -> None:
        """Hold the entry for longer, before it is looked what may go of the next files.

        From then on the lease must not run out: commits may take in what no worker deletes.

        Raises:
            PlanOutdated: another worker has it, or has ended it, or this process is to end.
        """
        with self._lock:
            self._hold(must_be_unbroken=False)
            self._must_be_unbroken = True

    def now_and_then(self) -> None:
        """Hold the entry for longer if that was a while ago; called between any two files.

        Raises:
            PlanOutdated: as `before_a_look`, or the lease has run out since what may go was looked at.
        """
        if self._is_due:
            with self._lock:
                if self._is_due:
                    self._hold(must_be_unbroken=self._must_be_unbroken)

    @property
    def _is_due(self) -> bool:
        return self._catalog.server.is_stopping.is_set() or _steady_ms() >= self._held_ms + _HELD_AGAIN_MS

    def _hold(self, *, must_be_unbroken: bool) -> None:
        server, now_ms = self._catalog.server, _steady_ms()
        if server.is_stopping.is_set() or not server.file_deletions.hold(
            self.deletion, LEASE_MS, must_be_unbroken=must_be_unbroken
        ):
            raise PlanOutdated
        self._held_ms = now_ms


def _steady_ms() -> int:
    return steady_ns() // 1_000_000


class HeldManifests(CheckedManifests):
    """Manifests that are read for an entry in the queue, which may take longer than a lease."""

    def __init__(self, catalog: Catalog, table: TableMetadata | None, hold: Hold) -> None:
        """Hold the entry for longer now and then."""
        super().__init__(catalog, table)
        self._hold = hold

    def manifests(self, snapshot: Snapshot) -> Sequence[ManifestFile]:
        """Return manifests as `CheckedManifests` does; raises `PlanOutdated` like `Hold`, too."""
        self._hold.now_and_then()
        return super().manifests(snapshot)

    def entries(self, manifest: ManifestFile) -> Iterator[ManifestEntry]:
        """Return entries as `CheckedManifests` does; raises `PlanOutdated` like `Hold`, too."""
        self._hold.now_and_then()
        return super().entries(manifest)


def wait_for_store(catalog: Catalog, deletion: Deletion, absence: str | None) -> None:
    """Have an entry tried again later where nothing at all is found, but not for ever.

    Args:
        catalog: the table's warehouse.
        deletion: the entry, as it was leased.
        absence: that the store may be away, as `absent_stores` says it; None if something was found.

    Raises:
        FilesUnavailable: something may be there, and this is one of the first looks in a row.
    """
    if absence is None and deletion.empty_looks:
        catalog.server.file_deletions.note_empty_looks(deletion, 0)
    if absence is None or deletion.empty_looks >= MOST_LOOKS:
        return
    catalog.server.file_deletions.note_empty_looks(deletion, deletion.empty_looks + 1)
    raise FilesUnavailable(
        f"{absence}. Bring it back; if nothing is found for about seven hours, this ends by itself"
    )


def groups_of(doomed: Unreachable) -> dict[str, list[Location]]:
    """Return the files that may be deleted, in groups, in the order of deletion."""
    names = ("content", "manifests", "lists", "statistics")
    return {name: [item.location for item in group] for name, group in zip(names, doomed.groups, strict=True)}


def delete_groups(
    catalog: Catalog,
    hold: Hold,
    owner: Owner,
    groups: Mapping[str, Sequence[Location]],
    registration: int | None,
    unread: Callable[[Sequence[Location]], list[Location]],
    before_last: Callable[[], object] = lambda: None,
    after_last: Callable[[], object] = lambda: None,
) -> None:
    """Delete group after group: the next group begins when all of the one before is deleted.

    Files that `deletable` does not allow, or that other tables reach, are left alone.

    Args:
        catalog: the table's warehouse.
        hold: of the entry in the queue.
        owner: the table that the files were found in.
        groups: by name, in the order of deletion: a file is deleted before the file that names it.
        registration: the one of the table's pointer as the files were looked for; None if there was no pointer.
        unread: returns those of some files that no other table reaches, as `OtherReaders` does.
        before_last: called when all groups but the last one are deleted.
        after_last: called when all are.

    Raises:
        FilesUnavailable: a file could not be deleted, or another table not be read; safe to try again.
        PlanOutdated: the files have to be looked for anew, or that is done.
    """
    deletion = hold.deletion
    # What takes long, or cannot be done now, comes before `begin`: from then on nothing of it can be registered.
    one_in_each = {location.rpartition("/")[0]: location for group in groups.values() for location in group}
    unread([location for location in one_in_each.values() if is_allowed(catalog, location)])
    if not catalog.server.file_deletions.begin(deletion, registration):
        raise PlanOutdated
    what = f"{deletion.kind} of {deletion.identifier}"
    deleted: Counter[str] = Counter()
    with ThreadPoolExecutor(WORKERS, "file-deletions") as pool:
        for number, (name, group) in enumerate(groups.items(), 1):
            if number == len(groups):
                before_last()
            for batch in _batches(group):
                hold.before_a_look()
                # After `begin`: what commits take in later is refused, and what they took in before is seen.
                going = unread(deletable(catalog, owner, batch))
                # What names these files must stay until they are gone.
                delete_all(catalog, hold, what, going, pool)
                deleted[name] += len(going)
            if number == len(groups):
                after_last()
            catalog.server.step(f"{_STEPS[deletion.kind]}_{name}_deleted")
    counts = ", ".join(f"{count} {name}" for name, count in deleted.items())
    log.info("%s: deleted %s", what, counts or "nothing")


def delete_all(
    catalog: Catalog, hold: Hold, what: str, locations: Sequence[Location], pool: Executor
) -> None:
    """Delete files that `deletable` has allowed.

    Args:
        hold: of the entry: without it commits may take in what is about to go.
        what: on whose behalf, for the log.

    Raises:
        PlanOutdated: the warehouse has other storage settings by now: whether they may go was found in both stores. Or
            the entry is not held any more.
        FilesUnavailable: one of them could not be deleted; safe to try again.
    """
    if own_catalog(catalog.server, catalog.warehouse.id).warehouse.storage != catalog.warehouse.storage:
        raise PlanOutdated
    outcomes = work_on_each(hold, lambda location: _delete(catalog, what, location), locations, pool)
    failures = [failure for failure in outcomes if failure is not None]
    if failures:
        raise FilesUnavailable(
            f"{len(failures)} of {len(locations)} files could not be deleted: {failures[0]}"
        ) from failures[0]


def work_on_each(
    hold: Hold, work: Callable[[Location], _Result], locations: Iterable[Location], pool: Executor
) -> Iterator[_Result]:
    """Return what comes of each of some files, in their order.

    Raises:
        PlanOutdated: the entry is not held any more, or this process is to end.
    """

    def work_while_held(location: Location) -> _Result:
        hold.now_and_then()
        return work(location)

    return pool.map(work_while_held, locations)


def _delete(catalog: Catalog, what: str, location: Location) -> IcetowerError | None:
    try:
        catalog.files.delete(location)
    except Unavailable as error:
        return error
    except IcetowerError as error:
        log.warning("%s cannot delete %s: %s", what, location, error)
    return None


def _batches(locations: Sequence[Location]) -> Iterator[list[Location]]:
    rest = iter(locations)
    while batch := list(islice(rest, BATCH)):
        yield batch
