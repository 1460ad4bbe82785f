"""The pointers and namespaces of a warehouse as they were at a moment."""

from __future__ import annotations

from dataclasses import dataclass

from app.database.past import Past
from app.database.pointers.history import PointerEvent
from app.database.pointers.pointer import Pointer, PointerKind
from app.engine.model.data_types.moments import moment_text
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.recoveries import PastIsGone


@dataclass(frozen=True, slots=True)
class PastPointers:
    """Pointers as they were."""

    past: Past
    at_ms: int

    def find(self, warehouse_id: int, identifier: TableIdentifier) -> Pointer | None:
        """Return what had this name.

        Raises:
            PastIsGone: something had it, and its history does not reach back so far.
        """
        state = self.past.find(warehouse_id, identifier, self.at_ms)
        if state is None:
            return None
        if state.location is None:
            raise PastIsGone(
                f"{state.kind} {identifier} was there at {moment_text(self.at_ms)}, but the events of that time are "
                "not kept any more: it is not known which metadata file it had"
            )
        return state.pointer(warehouse_id, state.location)

    def list_names(
        self,
        warehouse_id: int,
        namespace: Namespace,
        kind: PointerKind,
        after: str | None = None,
        limit: int | None = None,
    ) -> tuple[str, ...]:
        """Return the names that there were; raises `NoSuchNamespace`."""
        return self.past.list_names(warehouse_id, namespace, kind, self.at_ms, after, limit)

    def history(
        self, pointer_id: int, before: int | None = None, limit: int | None = None
    ) -> list[PointerEvent]:
        """Return the events until that moment, newest first."""
        return self.past.history(pointer_id, self.at_ms, before, limit)


@dataclass(frozen=True, slots=True)
class PastNamespaces:
    """Namespaces as they were."""

    past: Past
    at_ms: int

    def find(self, warehouse_id: int, namespace: Namespace) -> dict[str, str] | None:
        """Return the properties that a namespace had; None if it was not there."""
        return self.past.find_namespace(warehouse_id, namespace, self.at_ms)

    def list_children(
        self, warehouse_id: int, parent: Namespace | None, after: str | None = None, limit: int | None = None
    ) -> tuple[str, ...]:
        """Return the last levels of the namespaces below `parent`; raises `NoSuchNamespace`."""
        return self.past.list_children(warehouse_id, parent, self.at_ms, after, limit)
