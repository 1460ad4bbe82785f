"""Leases: renewed while a job runs, and lost when the server says so."""

from __future__ import annotations

import threading
from typing import Any, cast

from app.client.http.failures import AnswerLost, CatalogRefused
from app.client.table.maintenance import MaintenanceCalls
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.maintenance.leases import held

TABLE = TableIdentifier(Namespace(("a",)), "t")


class Calls:
    """Answers each renewal with the next of some outcomes, and then with success."""

    def __init__(self, *outcomes: Exception, enough: int) -> None:
        self.outcomes = list(outcomes)
        self.asked = 0
        self.enough = enough
        self.has_asked_enough = threading.Event()

    def hold_job(self, *_arguments: Any) -> None:
        self.asked += 1
        if self.asked >= self.enough:
            self.has_asked_enough.set()
        if self.outcomes:
            raise self.outcomes.pop(0)


def lost_after(calls: Calls) -> str | None:
    with held(cast(MaintenanceCalls, calls), TABLE, "1", lease_ms=20) as lease:
        assert calls.has_asked_enough.wait(30)
    return lease.lost


def test_lease_is_renewed_until_the_block_ends() -> None:
    assert lost_after(Calls(enough=3)) is None


def test_server_that_does_not_answer_is_asked_again() -> None:
    calls = Calls(AnswerLost("GET", "http://x", "gone"), CatalogRefused(503, "x", "later"), enough=3)

    assert lost_after(calls) is None


def test_lease_is_lost_once_the_server_says_so() -> None:
    calls = Calls(CatalogRefused(409, "JobConflictException", "it is abandoned"), enough=1)

    assert lost_after(calls) is not None
    assert calls.asked == 1
