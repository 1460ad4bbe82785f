from __future__ import annotations

from dataclasses import replace

from app.engine.chains.tables import Since, candidates_of, newest_of
from app.engine.chains.verdicts import Evidence, FoundTable, Verdict
from app.engine.model.ids import Location, TableUuid


def file(
    name: str,
    *log: str,
    sequence: int = 0,
    updated: int = 0,
    lists: str | None = None,
    version: int | None = None,
) -> FoundTable:
    return FoundTable(
        f"t/{name}",
        Location(f"file:///t/{name}"),
        TableUuid("u"),
        (sequence, 1),
        updated,
        tuple(f"t/{each}" for each in log),
        Location(lists) if lists else None,
        version,
    )


def newest(
    *files: FoundTable, lacking: tuple[str, ...] = (), since: Since | None = None
) -> Verdict[FoundTable]:
    return newest_of(candidates_of(files, since), {f"t/{each}" for each in lacking})


def name_of(verdict: Verdict[FoundTable]) -> str | None:
    return None if verdict.newest is None else verdict.newest.place.removeprefix("t/")


def test_the_file_that_no_log_names_is_the_newest() -> None:
    verdict = newest(file("0"), file("1", "0"), file("2", "0", "1"))

    assert (name_of(verdict), verdict.evidence, verdict.is_certain) == ("2", Evidence.CHAIN, True)


def test_files_that_a_log_names_may_be_gone_or_unread() -> None:
    assert name_of(newest(file("9", "7", "8"))) == "9"


def test_a_loser_is_passed_by_the_winner_however_high_its_numbers() -> None:
    # The loser has the same base, a higher sequence number and a higher name.
    verdict = newest(
        file("0"), file("9-loser", "0", sequence=5), file("1", "0"), file("2", "0", "1", sequence=1)
    )

    assert (name_of(verdict), verdict.is_certain) == ("2", True)


def test_a_loser_is_passed_even_if_the_winner_is_gone() -> None:
    assert newest(file("1-loser", "0", sequence=1), file("3", "0", "1", "2", sequence=3)).is_certain


def test_a_loser_of_long_ago_is_behind_what_has_been_current() -> None:
    verdict = newest(
        file("6-loser", "5", sequence=6), file("99", "98", sequence=99), file("100", "99", sequence=99)
    )

    assert (name_of(verdict), verdict.is_certain) == ("100", True)


def test_a_loser_that_says_it_is_younger_leaves_a_doubt() -> None:
    # It may be no loser: the table was set back to file 0, and went on from there.
    verdict = newest(
        file("0"), file("d", "0", updated=9), file("1", "0", updated=1), file("2", "0", "1", updated=2)
    )

    assert (name_of(verdict), verdict.is_certain) == ("2", False)
    assert verdict.others == ("file:///t/d",)
    assert "set back" in str(verdict.reason)


def test_of_two_with_one_parent_the_manifest_list_decides() -> None:
    verdict = newest(file("0"), file("1a", "0", sequence=9), file("1b", "0"), lacking=("1a",))

    assert (name_of(verdict), verdict.evidence, verdict.is_certain) == ("1b", Evidence.LISTS, True)


def test_then_sequence_and_time_make_one_likely_and_never_certain() -> None:
    by_sequence = newest(file("0"), file("1a", "0", sequence=2), file("1b", "0", sequence=1, updated=9))
    by_time = newest(file("0"), file("1a", "0", updated=2), file("1b", "0", updated=1))

    assert (name_of(by_sequence), by_sequence.evidence) == ("1a", Evidence.SEQUENCE)
    assert (name_of(by_time), by_time.evidence) == ("1a", Evidence.UPDATED)
    assert not by_sequence.is_certain
    assert not by_time.is_certain
    assert by_time.others == ("file:///t/1b",)


def test_equal_evidence_is_reported() -> None:
    verdict = newest(file("0"), file("1a", "0"), file("1b", "0"))

    assert verdict.newest is None
    assert set(verdict.others) == {"file:///t/1a", "file:///t/1b"}


def test_heads_with_different_parents_are_reported_whatever_their_numbers() -> None:
    # Registered back to 1, then 2b and 3b: both ways have been current.
    verdict = newest(
        file("3a", "1", "2a", sequence=3),
        file("3b", "1", "2b", sequence=9),
        file("1"),
        file("2a", "1"),
        file("2b", "1"),
    )

    assert verdict.newest is None
    assert "different" in str(verdict.reason)


def test_the_sole_file_without_its_manifest_list_is_not_taken() -> None:
    assert newest(file("0"), file("1", "0"), lacking=("1",)).newest is None


def test_logs_in_a_circle_are_reported() -> None:
    verdict = newest(file("0", "1"), file("1", "0"))

    assert verdict.newest is None
    assert "circle" in str(verdict.reason)


def test_file_system_tables_without_logs_go_by_their_version() -> None:
    files = [file(f"v{number}.metadata.json", version=number) for number in (1, 3, 2)]

    verdict = newest(*files)
    assert (name_of(verdict), verdict.evidence, verdict.is_certain) == (
        "v3.metadata.json",
        Evidence.FILE_SYSTEM,
        True,
    )


def test_no_file_has_no_newest() -> None:
    assert newest().newest is None


def test_a_known_pointer_goes_forward_along_the_logs() -> None:
    verdict = newest(file("1", "0"), file("5", "2", "3", "4"), file("2", "1"), since=Since("t/1"))

    assert (name_of(verdict), verdict.is_certain) == ("5", True)


def test_a_known_pointer_stays_where_nothing_follows() -> None:
    # Other branches of the history do not count.
    files = [file("0"), file("1", "0", sequence=1), file("2", "0", "1", sequence=2)]

    assert name_of(newest(*files, since=Since("t/2"))) == "2"


def test_what_a_pointer_has_left_is_not_forward() -> None:
    # Set back from 3 to 1 before the backup; 2b came after it.
    files = [file("1"), file("2", "1"), file("3", "1", "2"), file("2b", "1")]
    left = frozenset({"t/2", "t/3"})

    assert name_of(newest(*files, since=Since("t/1", left))) == "2b"
    assert name_of(newest(*files[:3], since=Since("t/1", left))) == "1"


def test_a_pointer_whose_file_is_gone_goes_by_the_chain() -> None:
    # Deleted after a commit, with all files between.
    assert name_of(newest(file("99", "98"), since=Since("t/1"))) == "99"


def test_counters_are_compared_one_by_one() -> None:
    old = replace(file("1-loser", "0"), counters=(0, 3))
    verdict = newest(old, replace(file("8", "7"), counters=(0, 4)), replace(file("9", "8"), counters=(0, 4)))

    assert (name_of(verdict), verdict.is_certain) == ("9", True)
