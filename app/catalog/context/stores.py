"""Where a warehouse keeps its names and pointers: what every such place promises."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from app.database.namespaces import PropertyChanges
from app.database.outcomes.idempotency_keys import IdempotencyClaim
from app.database.outcomes.receipt import CommitReceipt
from app.database.pointers.history import Author, PointerEvent
from app.database.pointers.moves import Advance, Creation, Unmoved
from app.database.pointers.pointer import Pointer, PointerKind
from app.database.pointers.pointers import PutOutcome
from app.database.pointers.recoverable import NO_RECOVERY, Recovery
from app.engine.model.identifiers import Namespace, TableIdentifier


class ShownPointers(Protocol):
    """Pointers for reading: as they are now, or as they were."""

    def find(self, warehouse_id: int, identifier: TableIdentifier) -> Pointer | None:
        """Return the pointer of this name, be it a table's or a view's."""

    def list_names(
        self,
        warehouse_id: int,
        namespace: Namespace,
        kind: PointerKind,
        after: str | None = None,
        limit: int | None = None,
    ) -> tuple[str, ...]:
        """Return up to `limit` names that follow `after`; raises `NoSuchNamespace`."""

    def history(
        self, pointer_id: int, before: int | None = None, limit: int | None = None
    ) -> list[PointerEvent]:
        """Return up to `limit` events with a sequence below `before`, newest first."""


class PointerStore(ShownPointers, Protocol):
    """The pointers of warehouses, and the check-and-put that moves them.

    `app.database.pointers.pointers.Pointers` says what each method means. Whatever raises `DatabaseUnavailable` or
    `FilesUnavailable` has changed nothing.
    """

    def list_pointers(self, warehouse_id: int, kind: PointerKind, after_id: int, limit: int) -> list[Pointer]:
        """Return up to `limit` pointers of a warehouse with ids above `after_id`, in their order."""

    def check_and_put(
        self,
        changes: Sequence[Advance | Unmoved | Creation],
        author: Author,
        *claims: IdempotencyClaim | None,
        receipts: Sequence[CommitReceipt] = (),
    ) -> PutOutcome:
        """Move each pointer from where it was seen, and create the new ones: all or nothing."""

    def has_landed(self, change: Advance | Creation, author: Author) -> bool:
        """Say whether a check-and-put of unknown outcome has happened, whatever happened since."""

    def drop(
        self,
        warehouse_id: int,
        identifier: TableIdentifier,
        kind: PointerKind,
        author: Author,
        claim: IdempotencyClaim | None = None,
        *,
        event: str = "dropped",
        expected: Pointer | None = None,
        recovery: Recovery = NO_RECOVERY,
    ) -> Pointer | None:
        """Remove a pointer and return it as it was; None if there is none."""

    def rename(
        self,
        warehouse_id: int,
        kind: PointerKind,
        source: TableIdentifier,
        destination: TableIdentifier,
        author: Author,
        claim: IdempotencyClaim | None = None,
        *,
        expected: Pointer | None = None,
    ) -> Pointer | None:
        """Give a pointer another name and return it; None if no pointer has the old name."""


class ShownNamespaces(Protocol):
    """Namespaces for reading: as they are now, or as they were."""

    def find(self, warehouse_id: int, namespace: Namespace) -> dict[str, str] | None:
        """Return the namespace's properties; None if it does not exist."""

    def list_children(
        self, warehouse_id: int, parent: Namespace | None, after: str | None = None, limit: int | None = None
    ) -> tuple[str, ...]:
        """Return the last levels of the children of `parent`, in order; raises `NoSuchNamespace`."""


class NamespaceStore(ShownNamespaces, Protocol):
    """The namespaces of warehouses.

    `app.database.namespaces.Namespaces` says what each method means.
    """

    def create(
        self,
        warehouse_id: int,
        namespace: Namespace,
        properties: Mapping[str, str],
        author: Author,
        claim: IdempotencyClaim | None = None,
    ) -> None:
        """Add a namespace, and those of its ancestors that are missing; raises `NamespaceExists`."""

    def drop(
        self,
        warehouse_id: int,
        namespace: Namespace,
        author: Author,
        claim: IdempotencyClaim | None = None,
        *,
        recovery: Recovery = NO_RECOVERY,
        check: Callable[[Mapping[str, str]], None] = lambda _properties: None,
    ) -> None:
        """Remove an empty namespace; raises `NoSuchNamespace` or `NamespaceNotEmpty`."""

    def update_properties(
        self,
        warehouse_id: int,
        namespace: Namespace,
        removals: Iterable[str],
        updates: Mapping[str, str],
        author: Author,
        claim: IdempotencyClaim | None = None,
    ) -> PropertyChanges:
        """Set some properties, then remove others; raises `NoSuchNamespace`."""
