"""Files that one attempt at a commit writes before a pointer names them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial

from app.catalog.context.catalog import Catalog
from app.catalog.context.deletable import deletable
from app.catalog.context.seen.left_metadata import LeftFile
from app.catalog.context.threads.side_by_side import WAITS_AT_ONCE
from app.catalog.context.threads.side_work import SideWork
from app.database.pointers.pointer import Pointer
from app.engine.model.ids import Location
from app.errors import IcetowerError
from app.fileio.locations import is_instant
from app.waits import wait_until_over

log = logging.getLogger(__name__)


class StagedFiles:
    """The files of one attempt: discarded if it was refused or lost, kept if that is not known.

    Attributes:
        contents: the manifests and manifest lists, whether they are stored yet or not; empty where they are not
            remembered, because they are many.
    """

    def __init__(
        self, catalog: Catalog, *, is_dry_run: bool = False, remembers_contents: bool = True
    ) -> None:
        """Prepare for writing; a dry run stores nothing."""
        self._catalog = catalog
        self.remembers_contents = remembers_contents
        self._is_dry_run = is_dry_run
        self._written: list[Location] = []
        self._pointer_ids: dict[Location, int] = {}
        self._later: list[tuple[Location, bytes]] = []
        self._writing: list[Future[None]] = []
        self.contents: dict[Location, bytes] = {}

    def write(self, location: Location, content: bytes) -> None:
        """Write a manifest list or manifest durably, under a name that no other attempt can have.

        Raises:
            FilesUnavailable: the store does not answer, or refuses.
        """
        if self.remembers_contents:
            self.contents[location] = content
        if self._is_dry_run:
            return
        # Noted first: a write that fails may have left something.
        self._written.append(location)
        self._catalog.files.write_new(location, content)

    def write_soon(self, location: Location, content: bytes) -> None:
        """Write a manifest list or manifest while others are planned; `settle` waits for it.

        Lists of commits that land together are written side by side: each may take as long as a request to a store. On
        this machine they wait until all are planned, see `begin_to_settle`.
        """
        self.contents[location] = content
        if self._is_dry_run:
            return
        if is_instant(location):
            self._later.append((location, content))
            return
        self._written.append(location)
        write = partial(self._catalog.files.write_new, location, content)
        self._writing.append(self._catalog.server.side_work.start(write))

    def settle(self) -> None:
        """Wait until everything is durable.

        Raises:
            FilesUnavailable: the store does not answer, or refuses.
        """
        begin_to_settle(self._catalog.server.side_work, [self])
        writing, self._writing = self._writing, []
        for each in writing:
            wait_until_over(each)
        for each in writing:
            each.result()

    def take_later(self) -> list[Callable[[], None]]:
        """Return what writes each file that waits, and leave that to the caller."""
        later, self._later = self._later, []
        self._written += [location for location, _ in later]
        return [partial(self._catalog.files.write_new, *each) for each in later]

    def wait_for(self, writing: Future[None]) -> None:
        """Let `settle` wait for something that writes files of these."""
        self._writing.append(writing)

    def write_metadata(self, location: Location, content: bytes, seen: Pointer | None) -> None:
        """Write a metadata file durably; it is compressed if its name says so.

        Args:
            location: its name, which no other attempt can have.
            content: what is in it.
            seen: the pointer that is to move to it; None if it is to be made.

        Raises:
            FilesUnavailable: the store does not answer, or refuses.
        """
        self._catalog.server.step("before_write")
        self._written.append(location)
        if seen is not None:
            self._pointer_ids[location] = seen.id
        self._catalog.server.metadata_files.write(self._catalog.files, location, content)
        self._catalog.server.step("after_write")

    def discard(self) -> None:
        """Delete what was written, unless a pointer names it.

        Metadata files that have to stay are noted, so that a rebuild does not take them for commits: housekeeping asks
        again. All others are orphans, which do no harm.
        """
        for each in self._writing:
            wait_until_over(each)
        written, self._written, self._writing = self._written, [], []
        self._later.clear()
        self.contents.clear()
        try:
            going = deletable(self._catalog, None, written) if written else []
        except IcetowerError as error:
            log.warning("could not ask whether %s may go: %s", ", ".join(written), error)
            self._leave(written)
            return
        for location in going:
            try:
                self._catalog.files.delete(location)
            except IcetowerError as error:
                log.warning("could not discard %s: %s", location, error)
                self._leave([location])

    def _leave(self, locations: Sequence[Location]) -> None:
        server, warehouse_id = self._catalog.server, self._catalog.warehouse.id
        server.left_metadata.note(
            *(
                LeftFile(location, warehouse_id, self._pointer_ids[location], server.now_ms())
                for location in locations
                if location in self._pointer_ids
            )
        )


def begin_to_settle(side_work: SideWork, all_files: Sequence[StagedFiles]) -> None:
    """Begin to write what waits until all commits are planned, in a few threads.

    A thread for each file would take longer to wake up than the file takes.
    """
    waiting = [(files, write) for files in all_files for write in files.take_later()]
    for first in range(min(WAITS_AT_ONCE, len(waiting))):
        part = waiting[first::WAITS_AT_ONCE]
        started = side_work.start(partial(_do_all, [write for _, write in part]))
        for files in {id(files): files for files, _ in part}.values():
            files.wait_for(started)


def _do_all(writes: Sequence[Callable[[], None]]) -> None:
    for write in writes:
        write()
