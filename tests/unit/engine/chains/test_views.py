from __future__ import annotations

from app.engine.chains.verdicts import Evidence, FoundView
from app.engine.chains.views import newest_view
from app.engine.model.ids import Location, TableUuid


def view(name: str, *log: tuple[int, int], number: int | None = None) -> FoundView:
    return FoundView(f"v/{name}", Location(f"file:///v/{name}"), TableUuid("u"), log, number)


def test_the_longer_log_is_newer_and_numbers_do_not_count() -> None:
    old, new = view("9", (1, 1), number=9), view("1", (1, 1), (2, 2), number=1)

    verdict = newest_view([new, old])
    assert (verdict.newest, verdict.evidence, verdict.is_certain) == (new, Evidence.VERSION_LOG, True)


def test_a_trimmed_log_goes_on_from_the_last_entry_of_the_older_one() -> None:
    old, new = view("a", (1, 1), (2, 2)), view("b", (2, 2), (3, 1))

    assert newest_view([old, new]).newest is new


def test_equal_logs_go_by_the_number_which_is_likely_only() -> None:
    old, new = view("a", (1, 1), number=1), view("b", (1, 1), number=2)

    verdict = newest_view([old, new])
    assert (verdict.newest, verdict.evidence, verdict.is_certain) == (new, Evidence.NUMBER, False)
    assert verdict.others == (old.location,)


def test_equal_logs_and_numbers_are_reported() -> None:
    assert newest_view([view("a", (1, 1), number=1), view("b", (1, 1), number=1)]).newest is None


def test_logs_that_part_are_reported() -> None:
    verdict = newest_view([view("a", (1, 1), (2, 2)), view("b", (1, 1), (3, 2))])

    assert verdict.newest is None
    assert len(verdict.others) == 2


def test_nothing_has_no_newest() -> None:
    assert newest_view([]).newest is None
