"""Deletions that cannot be done now: none is given up for what says nothing of its files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from app.catalog.deletions.queue import MANY_FAILURES
from app.database.deletions.file_deletions import Deletion, FileDeletions
from app.database.warehouses import Warehouse
from app.errors import CommitStateUnknown, StoreNotOpened
from app.fileio.files import FileIO
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import with_server
from tests.builders.queues import let_queue_age, work_off_one
from tests.unit.catalog.deletions.test_runner import files_of, with_files_to_delete

HOUR_MS = 3_600_000


class LostReply(FileDeletions):
    """The queue of a database that was lost once, just as it had confirmed that an entry is held."""

    is_lost = False

    def hold(self, deletion: Deletion, lease_ms: int, *, must_be_unbroken: bool = False) -> bool:
        is_held = super().hold(deletion, lease_ms, must_be_unbroken=must_be_unbroken)
        if not self.is_lost:
            self.is_lost = True
            raise CommitStateUnknown("The database did not confirm the change")
        return is_held


def unopened(_warehouse: Warehouse) -> FileIO:
    raise StoreNotOpened("Environment variable LAKE_KEY of the server is not set")


def broken(_warehouse: Warehouse) -> FileIO:
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("kind", ["purge", "expire"])
@pytest.mark.parametrize(("files", "reason"), [(unopened, "LAKE_KEY"), (broken, "can't start new thread")])
def test_a_server_that_lacks_something_leaves_deletions_for_later(
    tmp_path: Path, kind: str, files: Callable[[Warehouse], FileIO], reason: str
) -> None:
    store = MemoryFiles()
    catalog = with_files_to_delete(tmp_path, store, kind)
    before, queue = files_of(store), catalog.server.file_deletions

    assert work_off_one(with_server(catalog, files_of=files).server)

    (waiting,) = queue.waiting(catalog.warehouse.id, MANY_FAILURES)
    assert (waiting.attempts, waiting.is_given_up) == (1, False)
    assert reason in waiting.error
    let_queue_age(queue, HOUR_MS)
    assert work_off_one(catalog.server)
    assert files_of(store) < before
    assert queue.counts() == {"done": 1}


@pytest.mark.parametrize("kind", ["purge", "expire"])
def test_a_deletion_goes_on_after_a_reply_of_the_database_was_lost(tmp_path: Path, kind: str) -> None:
    store = MemoryFiles()
    catalog = with_files_to_delete(tmp_path, store, kind)
    before, queue = files_of(store), LostReply(catalog.server.file_deletions._database)

    assert work_off_one(with_server(catalog, file_deletions=queue).server)
    assert queue.counts() == {"queued": 1}
    let_queue_age(queue, HOUR_MS)
    assert work_off_one(with_server(catalog, file_deletions=queue).server)

    assert files_of(store) < before
    assert queue.counts() == {"done": 1}
