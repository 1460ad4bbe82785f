from __future__ import annotations

from app.engine.chains.tables import Since
from app.engine.chains.verdicts import Evidence, FoundView
from app.engine.chains.views import newest_view, versions_beside
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


def test_cut_logs_that_say_nothing_of_each_other_go_by_the_number() -> None:
    old, new = view("a", (1, 1), number=0), view("b", (9, 9), number=1)

    verdict = newest_view([old, new])
    assert (verdict.newest, verdict.evidence, verdict.is_certain) == (new, Evidence.NUMBER, False)


def test_what_branches_off_before_an_earlier_place_of_the_pointer_does_not_count() -> None:
    first = view("a", (1, 1), number=0)
    base = view("b", (1, 1), (2, 2), number=1)
    beside = view("c", (1, 1), (3, 2), (4, 3), number=2)
    left = view("d", (1, 1), (2, 2), (5, 3), number=2)
    files, since = [first, base, beside, left], Since(base.place, frozenset({left.place}))

    verdict = newest_view(files, since)
    assert (verdict.newest, verdict.is_certain) == (base, True)
    later = view("e", (1, 1), (2, 2), (6, 3), number=2)
    assert newest_view([*files, later], since).newest is later


def test_only_what_another_file_follows_has_landed_beside_the_pointer() -> None:
    """A writer that lost a race may have written several versions that were to land together."""
    first, base = view("a", (1, 1)), view("b", (1, 1), (2, 2))
    lost = view("c", (1, 1), (3, 2), (4, 3))
    landed = [view("d", (1, 1), (5, 2)), view("e", (1, 1), (5, 2), (6, 3))]
    since = Since(base.place)

    assert versions_beside([first, base, lost], since) == ()
    assert versions_beside([first, base, lost, *landed], since) == (landed[-1].location,)


def test_among_files_that_may_follow_an_earlier_place_only_higher_numbers_count() -> None:
    base = view("b", (5, 5), number=4)
    before = [view(str(number), (number, number), number=number - 1) for number in range(1, 5)]
    since = Since(base.place)

    verdict = newest_view([*before, base], since)
    assert (verdict.newest, verdict.is_certain) == (base, True)
    later = view("c", (6, 6), number=5)
    verdict = newest_view([*before, base, later], since)
    assert (verdict.newest, verdict.is_certain) == (later, False)


def test_an_earlier_place_whose_file_is_gone_leaves_the_others() -> None:
    left, new = view("a", (1, 1), (2, 2)), view("b", (1, 1))

    assert newest_view([left, new], Since("v/gone", frozenset({left.place}))).newest is new


def test_logs_that_part_are_reported() -> None:
    verdict = newest_view([view("a", (1, 1), (2, 2)), view("b", (1, 1), (3, 2))])

    assert verdict.newest is None
    assert len(verdict.others) == 2


def test_nothing_has_no_newest() -> None:
    assert newest_view([]).newest is None
