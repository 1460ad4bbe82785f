"""Which writer of a contended table may load it next."""

from __future__ import annotations

import pytest

from app.catalog.slots.beginnings import (
    CONTENDED_MS,
    FIRST_WINDOW_MS,
    LEASE_COURSES,
    LEASE_MS,
    LONGEST_TURN_MS,
    LONGEST_WINDOW_MS,
    MOST_UNUSED,
    MOST_WRITERS,
    REMEMBERED_MS,
    SAFETY,
    TURN_COURSES,
    TURN_MS,
    Beginnings,
    Client,
)

A, B, C = ("10.0.0.1", 1), ("10.0.0.1", 2), ("10.0.0.2", 1)
HOLD_MS = 20_000.0


def contended(*writers: Client) -> Beginnings:
    """Return a table to which these have committed, and for which another one has just lost a race."""
    beginnings = Beginnings()
    for writer in (*writers, ("elsewhere", 1)):
        beginnings.note_end(writer, 0, writer=str(writer), has_lost=writer[0] == "elsewhere")
    return beginnings


def waits(beginnings: Beginnings, client: Client, now_ms: float = 1, *, may_begin: bool = True) -> bool:
    return beginnings.must_wait(client, now_ms, may_begin=may_begin)


def released(beginnings: Beginnings, now_ms: float, *, may_begin: bool = True) -> list[Client]:
    return beginnings.release(now_ms, HOLD_MS, may_begin=may_begin)


def land(beginnings: Beginnings, client: Client, now_ms: float) -> None:
    beginnings.note_commit(client, now_ms)
    beginnings.note_end(client, now_ms, writer=str(client), has_lost=False)


def test_no_load_waits_while_writers_do_not_collide() -> None:
    beginnings = Beginnings()
    land(beginnings, A, 0)
    land(beginnings, B, 0)

    assert not waits(beginnings, A)
    assert not waits(beginnings, B)


def test_clients_that_have_not_committed_never_wait() -> None:
    beginnings = contended(A)
    assert not waits(beginnings, A)

    assert not waits(beginnings, B)


def test_writers_go_one_after_the_other_in_the_order_in_which_they_came() -> None:
    beginnings = contended(A, B, C)
    assert [waits(beginnings, writer) for writer in (A, B, C)] == [False, True, True]
    assert released(beginnings, 2) == []

    land(beginnings, A, 3)
    assert released(beginnings, 3) == [B]
    assert released(beginnings, 3) == []
    land(beginnings, B, 4)

    assert released(beginnings, 4) == [C]


def test_a_writer_that_has_lost_goes_before_those_that_have_not() -> None:
    beginnings = contended(A, B, C)
    beginnings.note_end(C, 0, writer=str(C), has_lost=True)
    assert [waits(beginnings, writer) for writer in (A, B, C)] == [False, True, True]
    land(beginnings, A, 2)

    assert released(beginnings, 2) == [C]


def test_a_writer_that_has_a_slot_of_its_own_waits_for_nobody_and_others_wait_for_it() -> None:
    beginnings = contended(A, B)
    for _ in range(2):
        beginnings.note_end(B, 0, writer=str(B), has_lost=True)

    assert not waits(beginnings, B)
    assert waits(beginnings, A)


def test_who_does_not_commit_after_its_load_is_waited_for_as_long_as_writers_take() -> None:
    beginnings = contended(A, B)
    assert [waits(beginnings, writer) for writer in (A, B)] == [False, True]
    end_ms = 1 + SAFETY * FIRST_WINDOW_MS
    assert beginnings.next_ms(HOLD_MS) == end_ms
    assert released(beginnings, end_ms - 1) == []

    assert released(beginnings, end_ms) == [B]


def test_a_commit_that_has_come_is_waited_for_until_it_has_ended() -> None:
    beginnings = contended(A, B)
    assert [waits(beginnings, writer) for writer in (A, B)] == [False, True]
    beginnings.note_commit(A, 2)
    assert released(beginnings, HOLD_MS) == []

    beginnings.note_end(A, HOLD_MS, writer=None, has_lost=False)

    assert released(beginnings, HOLD_MS) == [B]


def test_commits_of_newcomers_are_waited_for_too() -> None:
    beginnings = contended(A)
    beginnings.note_commit(B, 1)

    assert waits(beginnings, A, 2)


def test_no_load_waits_longer_than_the_operator_allows() -> None:
    beginnings = contended(A, B)
    beginnings.note_commit(A, 1)
    assert waits(beginnings, B, 1)
    assert released(beginnings, HOLD_MS) == []

    assert released(beginnings, 1 + HOLD_MS) == [B]


def test_a_client_that_loads_without_committing_waits_no_more() -> None:
    beginnings = contended(A, B)
    now_ms = 1.0
    for _ in range(MOST_UNUSED):
        assert not waits(beginnings, A, now_ms)
        assert waits(beginnings, B, now_ms)
        now_ms += SAFETY * FIRST_WINDOW_MS
        assert released(beginnings, now_ms) == [B]
        land(beginnings, B, now_ms)
    beginnings.note_commit(B, now_ms)

    assert not waits(beginnings, A, now_ms)
    land(beginnings, A, now_ms)
    assert [waits(beginnings, A, now_ms), waits(beginnings, A, now_ms)] == [False, True]


def test_a_table_is_contended_for_a_while_after_a_lost_race_and_after_each_load_that_waited() -> None:
    beginnings = contended(A, B)
    assert not waits(beginnings, A, CONTENDED_MS)
    assert [waits(beginnings, writer, CONTENDED_MS - 1) for writer in (A, B)] == [False, True]
    land(beginnings, A, CONTENDED_MS)
    assert released(beginnings, CONTENDED_MS) == [B]

    assert waits(beginnings, A, CONTENDED_MS)


def test_writers_are_forgotten_after_a_while() -> None:
    beginnings = contended(A, B)
    beginnings.note_end(B, REMEMBERED_MS + 1, writer=str(B), has_lost=True)
    beginnings.note_commit(B, REMEMBERED_MS + 1)

    assert not waits(beginnings, A, REMEMBERED_MS + 1)


def test_only_so_many_writers_are_remembered() -> None:
    beginnings = Beginnings()
    for port in range(MOST_WRITERS + 5):
        beginnings.note_end(("10.0.0.1", port), port, writer=str(("10.0.0.1", port)), has_lost=False)

    assert len(beginnings.writers) == MOST_WRITERS
    assert ("10.0.0.1", MOST_WRITERS + 4) in beginnings.writers
    assert ("10.0.0.1", 4) not in beginnings.writers


def test_a_commit_that_adds_no_snapshot_makes_no_writer() -> None:
    beginnings = contended(A)
    beginnings.note_commit(B, 1)
    beginnings.note_end(B, 1, writer=None, has_lost=False)

    assert B not in beginnings.writers
    assert beginnings.at_work == {}


def test_the_window_follows_the_writers() -> None:
    beginnings = contended(A)
    for round_number in range(200):
        assert not waits(beginnings, A, 20 * round_number)
        beginnings.contended_until_ms = 1e9
        land(beginnings, A, 20 * round_number + 10)
    assert 8 < beginnings.window_ms < 14

    assert not waits(beginnings, A, 5_000)
    land(beginnings, A, 5_100)
    assert beginnings.window_ms > 10


def test_who_writes_data_between_its_load_and_its_commit_is_not_waited_for() -> None:
    beginnings = contended(A)
    for round_number in range(20):
        beginnings.contended_until_ms = 1e9
        assert not waits(beginnings, A, 10_000 * round_number)
        beginnings.release(10_000 * round_number + 5_000, HOLD_MS, may_begin=True)
        land(beginnings, A, 10_000 * round_number + 5_000)

    assert beginnings.window_ms == FIRST_WINDOW_MS


def test_a_writer_that_loads_twice_for_each_commit_waits_with_its_second_load_only() -> None:
    beginnings = contended(A, B)
    waits(beginnings, A, 1)
    waits(beginnings, A, 2)
    land(beginnings, A, 3)
    beginnings.note_commit(B, 3)

    assert not waits(beginnings, A, 4)
    assert waits(beginnings, A, 5)


def test_a_writer_that_tries_again_waits_with_its_first_load() -> None:
    beginnings = contended(A, B)
    waits(beginnings, A, 1)
    waits(beginnings, A, 2)
    land(beginnings, A, 3)
    beginnings.note_end(A, 4, writer=str(A), has_lost=True)
    beginnings.note_commit(B, 4)

    assert waits(beginnings, A, 5)


def test_a_load_whose_client_has_gone_is_not_let_go() -> None:
    beginnings = contended(A, B, C)
    assert [waits(beginnings, writer) for writer in (A, B, C)] == [False, True, True]
    beginnings.leave(B)
    land(beginnings, A, 2)

    assert released(beginnings, 2) == [C]
    assert beginnings.next_ms(HOLD_MS) is None


def test_nobody_begins_while_writers_of_another_server_may() -> None:
    beginnings = contended(A, B)
    assert waits(beginnings, A, may_begin=False)
    assert released(beginnings, 2, may_begin=False) == []

    assert released(beginnings, 3) == [A]


def test_nobody_begins_who_would_not_end_before_the_lease_does() -> None:
    beginnings = contended(A, B)
    for number in range(200):
        waits(beginnings, A, 10 * number)
        beginnings.note_commit(A, 10 * number + 2)
        land(beginnings, A, 10 * number + 8)
    beginnings.lease_until_ms = 3_000

    assert beginnings.window_ms < beginnings.course_ms
    assert beginnings.course_ms == pytest.approx(8, rel=0.3)
    assert beginnings.may_begin(3_000 - beginnings.course_ms)
    assert not beginnings.may_begin(3_001 - beginnings.course_ms)


def test_one_that_lost_or_took_very_long_says_nothing_of_how_long_writers_take() -> None:
    beginnings = contended(A, B)
    waits(beginnings, A, 1)
    land(beginnings, A, 1 + LONGEST_WINDOW_MS + 1)
    waits(beginnings, A, 10_000)
    beginnings.note_end(A, 10_200, writer=str(A), has_lost=True)

    assert beginnings.course_ms == FIRST_WINDOW_MS


def test_the_first_writer_says_how_long_writers_take() -> None:
    beginnings = contended(A, B)
    waits(beginnings, A, 1)
    beginnings.note_commit(A, 251)
    land(beginnings, A, 381)

    assert (beginnings.window_ms, beginnings.course_ms) == (250, 380)


def test_a_server_may_lengthen_its_lease_until_its_turn_is_over() -> None:
    beginnings = Beginnings(course_ms=100, has_learnt=True)
    beginnings.note_lease(1_000, beginnings.lease_ms(1_000))
    turn_ms = TURN_COURSES * 100

    assert beginnings.may_lengthen(1_150)
    assert beginnings.lease_ms(1_150) == LEASE_COURSES * 100
    beginnings.note_lease(1_150, 200, lengthens=True)
    beginnings.note_lease(1_300, 300, lengthens=True)
    assert beginnings.lease_ms(1_450) == 150, "no longer than the turn"
    assert beginnings.may_lengthen(1_000 + turn_ms - 100)
    assert not beginnings.may_lengthen(1_000 + turn_ms - 99), "a writer would not end in it"


def test_a_lease_that_ended_while_it_was_lengthened_begins_no_other_turn() -> None:
    beginnings = Beginnings(course_ms=100, has_learnt=True)
    beginnings.note_lease(1_000, 200)
    assert beginnings.may_lengthen(1_195)

    beginnings.note_lease(1_205, 200, lengthens=True)

    assert beginnings.turn_until_ms == 1_000 + TURN_COURSES * 100


def test_a_turn_is_short_until_it_is_known_how_long_writers_take() -> None:
    beginnings = Beginnings()
    beginnings.note_lease(1_000, beginnings.lease_ms(1_000))
    assert beginnings.turn_until_ms == 1_000 + TURN_MS

    beginnings.note_lease(1_000 + TURN_MS, beginnings.lease_ms(1_000 + TURN_MS))
    assert beginnings.turn_until_ms == 1_000 + 2 * TURN_MS


def test_a_lease_gets_shorter_as_soon_as_it_is_known_how_long_writers_take() -> None:
    beginnings = contended(A, B)
    beginnings.note_lease(1, beginnings.lease_ms(1))
    waits(beginnings, A, 1)
    land(beginnings, A, 11)

    assert beginnings.lease_until_ms == 11 + LEASE_MS


def test_it_says_whether_a_writer_waits_that_has_lost() -> None:
    beginnings = contended(A, B)
    beginnings.note_end(B, 1, writer=str(B), has_lost=True)
    assert not beginnings.has_lost

    waits(beginnings, A, may_begin=False)
    assert not beginnings.has_lost
    waits(beginnings, B, may_begin=False)
    assert beginnings.has_lost


def test_a_lease_that_has_ended_begins_another_turn_and_none_is_longer_than_a_bound() -> None:
    beginnings = Beginnings(course_ms=LONGEST_WINDOW_MS, has_learnt=True)
    beginnings.note_lease(0, beginnings.lease_ms(0))
    assert beginnings.turn_until_ms == LONGEST_TURN_MS

    beginnings.note_lease(10_000, beginnings.lease_ms(10_000))
    assert beginnings.turn_until_ms == 10_000 + LONGEST_TURN_MS


def contended_by_sharers() -> Beginnings:
    """Return a contended table on which a writer of A's address has come back on another connection than before."""
    beginnings = contended(A, B, C)
    beginnings.note_end(A, 0, writer="1", has_lost=True)
    beginnings.note_end(B, 0, writer="1", has_lost=True)
    return beginnings


def test_no_load_waits_from_an_address_whose_writers_share_connections() -> None:
    beginnings = contended_by_sharers()

    assert not waits(beginnings, C), "another address: it is on its way now"
    assert not waits(beginnings, A)
    assert not waits(beginnings, B)
    assert not beginnings.waits_with_load(A, 1)


def test_a_writer_that_lands_on_another_connection_shows_it_as_well() -> None:
    beginnings = contended(A, B)
    beginnings.note_end(A, 0, writer="1", has_lost=True)
    assert beginnings.waits_with_load(A, 0)

    beginnings.note_end(B, 0, writer="1", has_lost=False)

    assert beginnings.shares(A, 0)


def test_a_writer_that_comes_back_on_a_connection_that_another_one_has_used_meanwhile_shows_it_as_well() -> (
    None
):
    beginnings = contended(A, B)
    beginnings.note_end(A, 0, writer="1", has_lost=True)
    beginnings.note_end(A, 0, writer="2", has_lost=False)
    assert not beginnings.shares(A, 0), "the first one may have given up"

    beginnings.note_end(A, 0, writer="1", has_lost=True)

    assert beginnings.shares(A, 0)


@pytest.mark.parametrize("client", [A, C], ids=["same connection", "another address"])
def test_connections_are_not_shared_because_of_a_writer(client: Client) -> None:
    beginnings = contended(A, C)
    beginnings.note_end(A, 0, writer="1", has_lost=True)

    beginnings.note_end(client, 0, writer="1", has_lost=True)

    assert not beginnings.shares(client, 0)


def test_loads_that_wait_go_on_when_their_connections_prove_to_be_shared() -> None:
    beginnings = contended(A, B, C)
    assert [waits(beginnings, writer) for writer in (C, A, B)] == [False, True, True]
    assert released(beginnings, 2) == []

    beginnings.note_sharing(A[0], 1_000)

    assert released(beginnings, 3) == [A, B]


def test_nobody_waits_for_a_writer_on_a_shared_connection() -> None:
    beginnings = contended(A, B, C)
    assert not waits(beginnings, A)
    beginnings.note_sharing(A[0], 1_000)
    beginnings.note_commit(B, 2)

    assert beginnings.at_work == {}
    assert not waits(beginnings, C)


def test_connections_count_as_shared_for_a_while_only() -> None:
    beginnings = contended_by_sharers()

    assert beginnings.shares(A, REMEMBERED_MS - 1)
    assert not beginnings.shares(A, REMEMBERED_MS)


def test_what_was_known_for_longer_stays_known() -> None:
    beginnings = contended_by_sharers()

    beginnings.note_sharing(A[0], 10)

    assert beginnings.shares(A, REMEMBERED_MS - 1)


def test_a_new_snapshot_has_lost_no_race_before() -> None:
    beginnings = contended(A)
    for _ in range(3):
        beginnings.note_end(A, 0, writer="1", has_lost=True)
    assert not beginnings.waits_with_load(A, 0)

    beginnings.note_end(A, 0, writer="2", has_lost=True)

    assert beginnings.waits_with_load(A, 0)


def test_only_so_many_losers_and_addresses_are_remembered() -> None:
    beginnings = Beginnings()
    for number in range(MOST_WRITERS + 1):
        beginnings.note_end(A, number, writer=str(number), has_lost=True)
    for number in range(MOST_WRITERS + 1):
        beginnings.note_sharing(f"10.0.{number}.1", 1_000 + number)

    assert len(beginnings.losers) == MOST_WRITERS
    assert "0" not in beginnings.losers
    assert len(beginnings.sharing) == MOST_WRITERS
    assert "10.0.0.1" not in beginnings.sharing
