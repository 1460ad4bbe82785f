"""Who calls, and the question whether the caller may do what is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from app.database.outcomes.idempotency_keys import IdempotencyClaim
from app.database.outcomes.receipt import ReceiptHead
from app.database.pointers.history import Author
from app.engine.model.identifiers import Namespace, TableIdentifier


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, in which request, and under which Idempotency-Key."""

    principal: str
    request_id: str
    claim: IdempotencyClaim | None = None
    head: ReceiptHead | None = None
    """What the receipt of the request begins with, if it changes something."""

    def author(self, at_ms: int) -> Author:
        """Return what pointer history remembers of this caller."""
        return Author(self.principal, self.request_id, at_ms, self.head)

    def claim_of(self, result: str) -> IdempotencyClaim | None:
        """Return the claim with what a success leaves for a repeated request; None without a key."""
        return None if self.claim is None else replace(self.claim, result=result)


SERVER_ITSELF = Caller(principal="icetower", request_id="")
"""The caller of what the server does unasked: start, housekeeping."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a caller wants to do: an operation, and the warehouse and names that it is about."""

    caller: Caller
    operation: str
    """The name of the use case, as `drop_table`."""
    warehouse: str | None
    """The name of the warehouse; None for the server as a whole."""
    names: tuple[Namespace | TableIdentifier, ...]


Permit = Callable[[Question], None]
"""Returns if the caller may do it, else raises `NotAllowed`. Every use case asks this before it does anything."""


def everyone_may(_question: Question) -> None:
    """Allow everything: there is no authorization yet."""
