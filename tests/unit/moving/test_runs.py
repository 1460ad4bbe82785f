"""Runs that a person interrupts: nothing more is begun, and what hangs holds up no exit."""

from __future__ import annotations

from threading import Event
from typing import cast

import pytest

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.moving import runs
from app.moving.mover import Mover
from app.moving.reports import MoveLine, MoveState
from app.moving.runs import run_moves
from app.moving.sources import Entry, Source
from app.moving.terms import Mode, Terms

ENTRIES = [Entry(TableIdentifier(Namespace(("sales",)), f"orders_{number:02}")) for number in range(20)]
TERMS = Terms(Mode.ADOPT, dry_run=True)


class HeldMover:
    """Moves the first entry at once, and others only when it is let."""

    def __init__(self) -> None:
        self.begun: list[Entry] = []
        self.may_end, self.second_is_begun = Event(), Event()

    def move(self, entry: Entry) -> MoveLine:
        self.begun.append(entry)
        if entry is not ENTRIES[0]:
            self.second_is_begun.set()
            self.may_end.wait()
        return MoveLine(entry, entry.identifier, TERMS.mode, MoveState.DONE)

    def interrupt(self, _line: MoveLine) -> None:
        """Do as Ctrl+C does, when the second entry is on its way."""
        self.second_is_begun.wait()
        raise KeyboardInterrupt


@pytest.fixture
def mover() -> HeldMover:
    return HeldMover()


def interrupted_run(mover: HeldMover) -> None:
    source, target = cast("Source", None), cast("RemoteCatalog", None)
    with pytest.raises(KeyboardInterrupt):
        run_moves(source, target, cast("Mover", mover), TERMS, ENTRIES, workers=1, listener=mover.interrupt)


def test_nothing_is_begun_after_an_interruption_and_what_hangs_is_left(
    mover: HeldMover, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "LAST_SECONDS", 0.01)

    interrupted_run(mover)
    mover.may_end.set()

    assert mover.begun == ENTRIES[:2]


def test_a_failure_of_a_mover_ends_the_run() -> None:
    class Failing(HeldMover):
        def move(self, entry: Entry) -> MoveLine:
            raise ZeroDivisionError

    source, target = cast("Source", None), cast("RemoteCatalog", None)
    with pytest.raises(ZeroDivisionError):
        run_moves(source, target, cast("Mover", Failing()), TERMS, ENTRIES, workers=2)
