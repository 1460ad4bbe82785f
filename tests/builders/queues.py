"""The queue of file deletions, whose clock is the database's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pytest
from sqlalchemy import update

from app.catalog.context.deletable import LEASE_MS
from app.catalog.context.server import Server
from app.catalog.deletions import runner
from app.catalog.deletions.queue import work_off
from app.catalog.manifests.table_manifests import CheckedManifests
from app.database.deletions.file_deletions import Deletion, FileDeletions
from app.database.schema.rows import file_deletions as rows
from app.engine.model.files.manifests import ManifestEntry, ManifestFile
from app.engine.model.ids import Location

_A_READ_MS = LEASE_MS * 2 // 3


def let_queue_age(queue: FileDeletions, by_ms: int) -> None:
    """Make all that is queued or leased older, as if time had passed."""
    statement = update(rows).values(
        not_before_ms=rows.c.not_before_ms - by_ms, leased_until_ms=rows.c.leased_until_ms - by_ms
    )
    queue._database.write(lambda connection: connection.execute(statement))


def work_off_one(server: Server) -> bool:
    """Delete the files of the oldest entry that is due; return whether there was one."""
    deletion = server.file_deletions.lease(LEASE_MS)
    if deletion is not None:
        work_off(server, deletion)
    return deletion is not None


def let_reads_take_long(monkeypatch: pytest.MonkeyPatch, queue: FileDeletions) -> Sequence[Deletion | None]:
    """Let each read of a manifest take most of a lease, after which another worker asks for an entry.

    Returns what it gets each time.
    """
    taken: list[Deletion | None] = []
    entries, live_paths = CheckedManifests.entries, CheckedManifests.live_paths

    def take_long() -> None:
        let_queue_age(queue, _A_READ_MS)
        taken.append(queue.lease(LEASE_MS))

    def slow_entries(self: CheckedManifests, manifest: ManifestFile) -> Iterator[ManifestEntry]:
        take_long()
        return entries(self, manifest)

    def slow_paths(self: CheckedManifests, manifest: ManifestFile) -> Iterable[Location]:
        take_long()
        return live_paths(self, manifest)

    monkeypatch.setattr(CheckedManifests, "entries", slow_entries)
    monkeypatch.setattr(CheckedManifests, "live_paths", slow_paths)
    monkeypatch.setattr(runner, "steady_ns", lambda: len(taken) * _A_READ_MS * 1_000_000)
    return taken
