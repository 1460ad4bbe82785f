"""Deleting marked orphans: each batch only after another look at all that could reach it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from app.catalog.context.catalog import Catalog
from app.catalog.context.deletable import Owner, deletable
from app.catalog.context.kinds import TABLES
from app.catalog.deletions.orphan_search import check_may_delete, path_hash
from app.catalog.deletions.orphans import files_of
from app.catalog.deletions.reached_states import ReachedStates
from app.catalog.deletions.runner import WORKERS, Hold, PlanOutdated, delete_all, work_on_each
from app.database.deletions.file_deletions import Deletion, FinalState
from app.database.pointers.pointer import Pointer
from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata
from app.errors import FilesUnavailable, MetadataFileMissing
from app.fileio.files import ListedFile


def delete_marked_orphans(catalog: Catalog, deletion: Deletion) -> FinalState:
    """Delete marked orphans that are still orphans; return `done` or `kept`.

    What all tables reach is read anew, and before each batch what has changed since. A file stays if anything of its
    path is reached, whatever the scheme, if its size or time has changed, or if `deletable` does not allow it.

    Raises:
        OrphansRefused: the table's files are not deleted any more, or it is not known what reaches them.
        FilesUnavailable: a file could not be read or deleted; safe to try again.
        MetadataFileMissing, CorruptMetadata, InvalidMetadata: metadata, or the list in the queue, cannot be read.
        PlanOutdated: the table was registered anew or dropped, or another worker has ended it.
    """
    if deletion.expired is None:
        return "done"  # What servers left, and a sweep that was killed: the next one finds the rest.
    assert deletion.pointer_id is not None
    hold = Hold(catalog, deletion)
    pointer = catalog.server.pointers.find_locked(deletion.pointer_id)
    if pointer is None or pointer.uuid != deletion.uuid:
        return "kept"  # without the table, it is not known what reaches its files
    metadata = _read(catalog, pointer)
    check_may_delete(catalog, pointer, metadata)
    work = _Work(catalog, deletion, hold, pointer, metadata)
    work.read_states()
    catalog.server.step("orphans_checked")
    if not catalog.server.file_deletions.begin(deletion, pointer.registration):
        raise PlanOutdated
    return work.delete()


def _read(catalog: Catalog, pointer: Pointer) -> TableMetadata:
    """Return a table's metadata; raises `FilesUnavailable` if the table has moved on."""
    try:
        return catalog.read(TABLES, pointer)
    except MetadataFileMissing as error:
        raise FilesUnavailable(f"Cannot look at {pointer.identifier}: {error}") from error


class _Work:
    """One run: what is marked, and what of it turned out to be reached."""

    def __init__(
        self, catalog: Catalog, deletion: Deletion, hold: Hold, pointer: Pointer, metadata: TableMetadata
    ) -> None:
        self._catalog, self._deletion, self._hold = catalog, deletion, hold
        self._pointer, self._metadata = pointer, metadata
        self._marked: set[int] = set()
        self._reached: set[int] = set()
        self._states = ReachedStates(catalog, self._note)

    def read_states(self) -> None:
        """Read what everything reaches, and note which marked files are among it."""
        runs, after = self._catalog.server.orphan_runs, -1
        while batches := runs.waiting(self._deletion.id, after, limit=100):
            for batch in batches:
                self._marked.update(path_hash(file.location) for file in files_of(batch))
            after = batches[-1].number
        self._states.add_table(self._pointer, self._metadata)
        self._states.add_others()

    def delete(self) -> FinalState:
        """Delete batch after batch; return `kept` if the table leaves the catalog meanwhile."""
        server, run_id = self._catalog.server, self._deletion.id
        with ThreadPoolExecutor(WORKERS, "file-deletions") as pool:
            while batches := server.orphan_runs.waiting(run_id, limit=1):
                (batch,) = batches
                self._hold.before_a_look()
                files = {file.location: file for file in files_of(batch)}
                now = work_on_each(self._hold, self._catalog.files.find_file, files, pool)
                unchanged = [
                    where
                    for where, found in zip(files, now, strict=True)
                    if found is not None and _is_same(found, files[where])
                ]
                going = self._still_orphans(unchanged)
                if going is None:
                    return "kept"
                server.step("orphans_batch_checked")
                delete_all(self._catalog, self._hold, f"orphans of {self._deletion.identifier}", going, pool)
                server.step("orphans_batch_deleted")
                size_bytes = sum(files[where].size_bytes for where in going)
                if not server.orphan_runs.batch_done(self._deletion, batch.number, len(going), size_bytes):
                    raise PlanOutdated
                server.step("orphans_batch_done")
        return "done"

    def _still_orphans(self, locations: list[Location]) -> list[Location] | None:
        """Return those that nothing reaches now and that may go; None if the table has left."""
        now = self._catalog.server.pointer_states.find(self._pointer.id)
        self._states.add_others()
        if now is None or (now.uuid, now.registration) != (self._pointer.uuid, self._pointer.registration):
            return None
        if now.metadata_location != self._pointer.metadata_location:
            self._pointer, self._metadata = now, _read(self._catalog, now)
            check_may_delete(self._catalog, now, self._metadata)
        owner = Owner.of(now.uuid, now.id, self._metadata)
        return deletable(
            self._catalog, owner, [where for where in locations if path_hash(where) not in self._reached]
        )

    def _note(self, location: Location) -> bool:
        self._hold.now_and_then()
        number = path_hash(location)
        if number not in self._marked:
            return False
        self._reached.add(number)
        return True


def _is_same(now: ListedFile, then: ListedFile) -> bool:
    # HTTP dates a single file to the second, and some stores date the files of a listing to the millisecond.
    return (now.size_bytes, now.modified_ms // 1000) == (then.size_bytes, then.modified_ms // 1000)
