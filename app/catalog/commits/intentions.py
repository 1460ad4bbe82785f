"""Intentions: what callers want of tables and views, as values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import Kind, Loaded, M
from app.catalog.context.recorded_places import RecordedPlace
from app.catalog.manifests.table_manifests import FindStaged
from app.database.pointers.left_files import QueuedExpiry, TakenIn
from app.database.pointers.pointer import Pointer
from app.engine.change.updates import Update
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, TableUuid
from app.engine.rebase.rebased_snapshots import Rebase
from app.errors import NotAllowed

D = TypeVar("D")
"""What an intention wants to know of the attempt that landed; None for most."""


@dataclass(frozen=True, slots=True)
class Base(Generic[M]):
    """A name as it is now."""

    kind: Kind[M]
    identifier: TableIdentifier
    found: Pointer | None
    """The pointer that has the name, of whatever kind."""
    metadata: M | None
    """The metadata to build on: the pointer's, or what an earlier intention of the same commit made of it."""
    is_stored: bool = True
    """Whether the metadata is in the pointer's file."""
    staged: FindStaged | None = field(default=None, compare=False, repr=False)
    """Finds what earlier intentions of the same attempt have written: their files may not be in the store yet."""

    @property
    def seen(self) -> Pointer | None:
        """The pointer, if it is of the right kind."""
        return self.found if self.found is not None and self.found.kind is self.kind.of_pointer else None

    @property
    def stored_at(self) -> Location | None:
        """Where the metadata is stored: what readers have seen, and the metadata log has to name."""
        return self.found.metadata_location if self.found is not None and self.is_stored else None

    def present(self) -> M:
        """Return the metadata to build on.

        Raises:
            NoSuchTable, NoSuchView: nothing of this kind has the name.
        """
        if self.metadata is None:
            raise self.kind.no_such(self.identifier)
        return self.metadata

    def check_writable(self) -> None:
        """Check that what has the name is this catalog's own.

        Raises:
            NotAllowed: it belongs to another catalog.
        """
        if self.seen is not None and self.seen.is_read_only:
            raise NotAllowed(
                f"{self.identifier} is read-only here: it belongs to another catalog and is only looked at. Commit to "
                "it there, or move it in first"
            )

    def check_free(self) -> None:
        """Check that the name is free.

        Raises:
            TableExists, ViewExists: it is not.
        """
        if self.found is not None:
            raise self.kind.taken(self.found.kind, self.identifier)


@dataclass(frozen=True, slots=True)
class Planned(Generic[M, D]):
    """What an intention makes of a base."""

    metadata: M | None
    """The new metadata; None if nothing has to change."""
    detail: D
    stored_at: Location | None = None
    """Where the new metadata is stored already, if it is: a registered file."""
    read_since_ms: int | None = None
    """When reading a registered file began, by the database's clock."""
    is_read_only: bool = False
    """Whether a registered file stays another catalog's."""
    expiry: QueuedExpiry | None = None
    """Files that go out of reach, to be queued for deletion in the same transaction: of one intention at most."""
    taken_in: TakenIn | None = None
    """Files of any age that it takes in; None if all its files are new."""
    updates: Sequence[Update] = ()
    """Updates that the server made, for the guard; those of the intention itself are there."""
    rebase: Rebase | None = None
    """What was applied in place of the intention's updates, if it lost a race and was rebased."""


class Intention(ABC, Generic[M, D]):
    """What one caller wants of one name.

    An intention knows no base: `require` and `apply` are called with the base of each attempt, anew after each lost
    race. What comes of it is a value too, so that one check-and-put can land several and answer each.
    """

    kind: Kind[M]
    identifier: TableIdentifier
    reads_base: bool = True
    """Whether the metadata of the present table or view is needed."""
    updates: Sequence[Update] = ()
    """What the guard looks at, and what a refusal is explained with."""
    created_as, advanced_as = "created", "committed"
    """What pointer history calls it."""
    needs_writable: bool = True
    """Whether it is refused for what belongs to another catalog."""

    @property
    def meant_for(self) -> TableUuid | None:
        """The uuid of the table that it is meant for, if the caller has said it."""
        return None

    def prepare(self, catalog: Catalog) -> None:
        """Read what its turn will need, while others for the name are at work.

        What is read stays in the server's caches. Nothing is changed, and nothing is raised.
        """

    def lands_with_others(self) -> bool:
        """Say whether it may land in one file with what others want of this name.

        It may if its answer is the table or view as it is then, and not what it did itself.
        """
        return False

    def joins(self) -> Hashable | None:
        """Return what makes neighbours one change with it; None if it stays alone."""
        return None

    def begin_joined(self, catalog: Catalog, base: Base[M]) -> Joined[M, D]:
        """Return the change that it becomes together with neighbours; only for one that `joins`."""
        raise NotImplementedError

    @abstractmethod
    def require(self, base: Base[M]) -> bool:
        """Check that this may be done to the base; return False if it has been done already.

        Raises:
            NotFound, AlreadyExists, CommitFailed, BadRequest: it may not.
        """

    @abstractmethod
    def apply(self, catalog: Catalog, base: Base[M], files: StagedFiles) -> Planned[M, D]:
        """Return what becomes of the base. New manifests are written to `files`; nothing else is changed.

        Raises:
            CommitFailed, BadRequest: it cannot be done to this base.
            Unavailable: the database or the store does not answer.
        """

    def remembered_as(self, at: RecordedPlace, *, changed: bool, detail: D | None) -> str:  # noqa: ARG002 - what most need not know
        """Return what a success leaves under an Idempotency-Key: by default where what is."""
        return at.to_text()


class Joined(ABC, Generic[M, D]):
    """One change that several intentions become, on one base."""

    @abstractmethod
    def add(self, intention: Intention[M, D]) -> None:
        """Take one more intention in, once `require` has been asked; a refused one leaves no trace.

        Raises:
            NotFound, AlreadyExists, CommitFailed, BadRequest: it is refused.
            Unavailable: the store does not answer.
        """

    @abstractmethod
    def apply(self, files: StagedFiles) -> list[Planned[M, D]]:
        """Return what becomes of the base: the same for all that were taken in, but for the detail.

        Raises:
            CommitFailed, BadRequest: it cannot be done to this base.
            Unavailable: the store does not answer.
        """


@dataclass(frozen=True, slots=True)
class Landed(Generic[M, D]):
    """What came of an intention."""

    base: Base[M]
    """What it was applied to."""
    loaded: Loaded[M]
    """The table or view as the commit left it."""
    changed: bool
    detail: D | None
    """None if it had been done already."""
    rebase: Rebase | None = None
    """What it was rebased onto, and what it became; None if it landed as it was sent."""

    @property
    def rebased(self) -> bool:
        """Whether it landed on another snapshot than the one it was built on."""
        return self.rebase is not None


class Reserved(Exception):
    """Slots are reserved for writers that have lost races: the commit has to ask first."""

    def __init__(self, pointer_id: int, writer: str) -> None:
        self.pointer_id = pointer_id
        self.writer = writer
        super().__init__(f"slots of table {pointer_id} are reserved")


def check_slots(base: Base[M], writer: str) -> None:
    """Check that a commit need not wait for the slot of another writer.

    Args:
        writer: what the commit is called in the table's queue.

    Raises:
        Reserved: it has to ask first.
    """
    if base.found is not None and base.found.is_reserved:
        raise Reserved(base.found.id, writer)
