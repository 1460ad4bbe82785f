"""Deleting groups of files, one after the other, while the entry in the queue is held."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from app.catalog.context.catalog import Catalog
from app.catalog.context.locations import is_allowed
from app.database.file_deletions import Deletion
from app.engine.model.ids import Location
from app.engine.retention.reachability import Unreachable
from app.errors import FilesUnavailable, IcetowerError, Unavailable

log = logging.getLogger(__name__)

BATCH = 256
"""How many files are deleted between two checks of the lease."""
WORKERS = 8
RENEWAL_SECONDS = 60.0
_STEPS = {"expire": "expired", "purge": "purged"}


def groups_of(doomed: Unreachable) -> dict[str, list[Location]]:
    """Return the files that may be deleted, in groups, in the order of deletion."""
    names = ("content", "manifests", "lists", "statistics")
    return {name: [item.location for item in group] for name, group in zip(names, doomed.groups, strict=True)}


def delete_groups(
    catalog: Catalog, deletion: Deletion, groups: Mapping[str, Sequence[Location]], lease_ms: int
) -> None:
    """Delete group after group: the next group begins when all of the one before is deleted.

    Files outside the warehouse are left alone.

    Args:
        groups: by name, in the order of deletion: a file is deleted before the file that names it.
        lease_ms: how long the entry in the queue is held with each renewal.

    Raises:
        FilesUnavailable: a file could not be deleted; safe to try again.
    """
    files = catalog.files
    renew_at = time.monotonic() + RENEWAL_SECONDS
    what = f"{deletion.kind} of {deletion.identifier}"

    def delete(location: Location) -> IcetowerError | None:
        try:
            files.delete(location)
        except Unavailable as error:
            return error
        except IcetowerError as error:
            log.warning("%s cannot delete %s: %s", what, location, error)
        return None

    deleted: Counter[str] = Counter()
    with ThreadPoolExecutor(WORKERS, "file-deletions") as pool:
        for name, group in groups.items():
            for batch in _batches(_allowed(catalog, what, group)):
                failures = [failure for failure in pool.map(delete, batch) if failure is not None]
                if failures:
                    # What names these files must stay until they are gone.
                    raise FilesUnavailable(
                        f"{len(failures)} of {len(batch)} files could not be deleted: {failures[0]}"
                    ) from failures[0]
                deleted[name] += len(batch)
                if time.monotonic() >= renew_at:
                    catalog.server.file_deletions.renew(deletion.id, catalog.now_ms() + lease_ms)
                    renew_at = time.monotonic() + RENEWAL_SECONDS
            catalog.server.step(f"{_STEPS[deletion.kind]}_{name}_deleted")
    counts = ", ".join(f"{count} {name}" for name, count in deleted.items())
    log.info("%s: deleted %s", what, counts or "nothing")


def _allowed(catalog: Catalog, what: str, group: Sequence[Location]) -> Iterator[Location]:
    for location in group:
        if is_allowed(catalog, location):
            yield location
        else:
            log.warning("%s leaves %s alone: outside warehouse %s", what, location, catalog.warehouse.name)


def _batches(locations: Iterator[Location]) -> Iterator[list[Location]]:
    while batch := list(islice(locations, BATCH)):
        yield batch
