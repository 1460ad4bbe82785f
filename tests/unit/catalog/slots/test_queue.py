from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.catalog.context.seen.traffic import QueueState
from app.catalog.slots.queue import (
    FIRST_WINDOW_MS,
    KEPT_MS,
    MARGIN_MS,
    MOST_FIRST_LOSSES,
    MOST_SHARING,
    MOST_SLOTS,
    SLOW,
    Before,
    LandingQueue,
    RetryRules,
)
from app.catalog.slots.retries import retries_of
from app.catalog.slots.rushes import QUIET_MS, Rush, SlotCounts
from app.engine.model.document import MAX_LONG

HOLD_MS = 20_000
NOW = 1_000_000
RETRIES = RetryRules()


def lose(queue: LandingQueue, writer: str, now_ms: int, retries: RetryRules = RETRIES) -> bool:
    return queue.lose(writer, retries, 1, now_ms)


def lost_often(losses: int, writer: str = "a", now_ms: int = NOW) -> LandingQueue:
    """Return a queue in which a writer has lost so often, and was released the last time, too."""
    queue = LandingQueue()
    for _ in range(losses):
        assert lose(queue, writer, now_ms)
        assert queue.release([writer], now_ms, HOLD_MS) == [writer]
    return queue


def test_lonely_loser_is_answered_at_once() -> None:
    queue = LandingQueue()

    assert lose(queue, "a", NOW)

    assert queue.release(["a"], NOW, HOLD_MS) == ["a"]
    assert queue.closed_until_ms("b", NOW + 150) is None


def test_writer_that_lost_twice_has_a_slot_of_its_own_after_its_back_off() -> None:
    queue = lost_often(2)
    opens = NOW + 200

    assert queue.is_reserved_at(NOW)
    assert queue.closed_until_ms("b", opens - MARGIN_MS - 1) is None, "it cannot have loaded yet"
    until = queue.closed_until_ms("b", opens)
    assert until is not None
    assert queue.closed_until_ms("a", opens) is None
    assert queue.closed_until_ms("b", until) is None, "a writer that does not come costs its slot only"


@pytest.mark.parametrize(("others_losses", "waits"), [(2, False), (3, True)])
def test_writer_that_comes_after_its_slot_waits_for_those_that_have_lost_more_often(
    others_losses: int, waits: bool
) -> None:
    queue = lost_often(2)
    queue.release(["a"], NOW, HOLD_MS)
    late_ms = queue.slots["a"].closes_ms
    for _ in range(others_losses):
        lose(queue, "b", late_ms)
    queue.release(["b"], late_ms, HOLD_MS)
    opens_ms = queue.slots["b"].opens_ms
    assert opens_ms is not None

    assert (queue.closed_until_ms("a", opens_ms) is not None) == waits
    assert queue.closed_until_ms("a", queue.slots["b"].closes_ms) is None
    assert queue.closed_until_ms("b", opens_ms) is None


def test_where_writers_are_slow_a_slot_is_a_writers_own_after_the_first_loss() -> None:
    queue = LandingQueue(window_ms=SLOW * RETRIES.min_wait_ms)
    lose(queue, "a", NOW)
    queue.release(["a"], NOW, HOLD_MS)

    assert queue.is_reserved_at(NOW)
    assert queue.closed_until_ms("b", NOW + 100) is not None
    assert queue.closed_until_ms("a", NOW + 100) is None


def test_first_loss_of_a_writer_that_waits_with_its_load_counts_but_gives_no_slot() -> None:
    queue = LandingQueue()
    assert queue.lose("a", RETRIES, 1, NOW, Before(waits_with_load=True))
    assert queue.slots == {}
    assert queue.release(["a"], NOW, HOLD_MS) == ["a"]
    queue = LandingQueue.from_json(json.loads(json.dumps(queue.to_json())))

    # Its next attempt may come to another server, which takes it for the first.
    assert queue.lose("a", RETRIES, 1, NOW + 150, Before(waits_with_load=True))

    assert queue.slots["a"].losses == 2
    assert queue.slots["a"].first_ms == NOW


@pytest.mark.parametrize("has_landed", [True, False])
def test_first_losses_are_forgotten_when_the_writer_has_landed_or_gone(has_landed: bool) -> None:
    queue = LandingQueue()
    queue.lose("a", RETRIES, 1, NOW, Before(waits_with_load=True))

    if has_landed:
        queue.land("a", NOW + 10)
    else:
        queue.leave(["a"])

    assert queue.first_losses == {}


def test_only_so_many_first_losses_are_remembered_and_not_for_ever() -> None:
    queue = LandingQueue()
    for number in range(MOST_FIRST_LOSSES + 1):
        queue.lose(str(number), RETRIES, 1, NOW, Before(waits_with_load=True))
    assert len(queue.first_losses) == MOST_FIRST_LOSSES
    assert "0" not in queue.first_losses

    queue.lose("late", RETRIES, 1, NOW + KEPT_MS, Before(waits_with_load=True))

    assert list(queue.first_losses) == ["late"]


def test_only_so_many_writers_have_slots_and_the_others_are_answered_at_once() -> None:
    queue = LandingQueue()
    for number in range(MOST_SLOTS):
        assert lose(queue, str(number), NOW)

    assert not lose(queue, "late", NOW)
    assert "late" in queue.release(["late", "1"], NOW, HOLD_MS)
    assert lose(queue, "1", NOW), "it has one already"


def test_addresses_whose_writers_share_connections_are_known_for_a_while() -> None:
    queue = LandingQueue()
    queue.lose("a", RETRIES, 1, NOW, Before(sharing="10.0.0.1"))
    queue = LandingQueue.from_json(json.loads(json.dumps(queue.to_json())))

    assert queue.sharing_at(NOW + 10) == {"10.0.0.1": KEPT_MS - 10}
    assert queue.sharing_at(NOW + KEPT_MS) == {}


def test_only_so_many_addresses_are_known() -> None:
    queue = LandingQueue()
    for number in range(MOST_SHARING + 1):
        queue.lose(f"{number}", RETRIES, 1, NOW, Before(sharing=f"10.0.0.{number}"))
    assert len(queue.sharing) == MOST_SHARING

    queue.lose("late", RETRIES, 1, NOW + KEPT_MS, Before(sharing="10.0.1.1"))

    assert list(queue.sharing) == ["10.0.1.1"]


def test_queue_of_an_earlier_version_can_be_read() -> None:
    earlier = lost_often(2).to_json()
    del earlier["first-losses"], earlier["sharing"]

    assert LandingQueue.from_json(earlier) == lost_often(2)


def test_landing_ends_the_slot() -> None:
    queue = lost_often(2)

    queue.land("a", NOW + 210)

    assert queue.slots == {}
    assert not queue.is_reserved_at(NOW + 210)
    assert queue.closed_until_ms("b", NOW + 210) is None


def test_slots_of_two_writers_do_not_overlap() -> None:
    queue = lost_often(2)
    for _ in range(2):
        lose(queue, "b", NOW)
        queue.release(["b"], NOW, HOLD_MS)

    now = queue.next_release_ms(NOW, HOLD_MS)
    assert now is not None
    assert queue.release(["b"], now, HOLD_MS) == ["b"]
    first, second = queue.slots["a"], queue.slots["b"]
    assert second.opens_ms is not None
    assert second.opens_ms >= first.closes_ms


def test_writer_with_fewest_retries_left_goes_first() -> None:
    queue = lost_often(2, "z")
    for writer in ("a", "b"):
        lose(queue, writer, NOW)
    for _ in range(2):
        queue.slots["b"] = queue.slots.pop("b")
        lose(queue, "b", NOW + 1)

    now, released = NOW + 1, list[str]()
    while len(released) < 2:
        released += [writer for writer in queue.release(["a", "b"], now, HOLD_MS) if writer not in released]
        now += 1

    opens = {writer: queue.slots[writer].opens_ms or 0 for writer in ("a", "b")}
    assert opens["b"] < opens["a"]


def test_writer_without_retries_left_gets_no_slot() -> None:
    queue = lost_often(4)

    assert not lose(queue, "a", NOW)

    assert queue.slots == {}
    assert queue.release(["a"], NOW, HOLD_MS) == ["a"]


@pytest.mark.parametrize(("count", "losses"), [(0, 0), (1, 1), (2, 1), (3, 1), (4, 2), (10, 2)])
def test_slots_are_protected_before_the_retries_are_used_up(count: int, losses: int) -> None:
    assert RetryRules(count=count).protected_losses == max(1, losses)
    assert lose(LandingQueue(), "a", NOW, RetryRules(count=count)) is (count > 0)


def test_writer_that_came_late_gets_a_longer_slot() -> None:
    queue = lost_often(2)
    lose(queue, "a", NOW + 200 + 2_000)
    now = NOW + 2_200
    queue.release(["a"], now, HOLD_MS)

    slot = queue.slots["a"]
    assert slot.opens_ms == now + 400
    assert slot.closes_ms - slot.opens_ms > 2_000


def test_slot_for_the_last_retry_is_twice_as_long_as_the_writer_took() -> None:
    queue = lost_often(1)
    lengths = []
    for losses in (RETRIES.count - 1, RETRIES.count):
        queue.slots["a"] = replace(queue.slots["a"], losses=losses, took_ms=2_000, opens_ms=None)
        queue.release(["a"], NOW, HOLD_MS)
        slot = queue.slots["a"]
        assert slot.opens_ms is not None
        lengths.append(slot.closes_ms - slot.opens_ms)

    assert lengths[0] < 2 * 2_000 < lengths[1]


def test_newcomers_wait_for_those_who_have_waited_for_long() -> None:
    queue = LandingQueue()
    for number in range(20):
        lose(queue, f"writer{number}", NOW)
    queue.release([], NOW, HOLD_MS)
    late = NOW + 10_000

    assert queue.closed_until_ms("newcomer", NOW) is None
    assert queue.closed_until_ms("newcomer", late) is not None
    assert queue.is_reserved_at(late)


def test_longest_hold_ends_every_wait() -> None:
    queue = LandingQueue()
    writers = [f"writer{number}" for number in range(500)]
    for writer in writers:
        lose(queue, writer, NOW)
    assert len(queue.release(writers, NOW, HOLD_MS)) < 500

    assert sorted(queue.release(writers, NOW + HOLD_MS, HOLD_MS)) == sorted(writers)


def test_writers_that_never_come_back_are_forgotten() -> None:
    queue = lost_often(3)

    queue.release([], NOW + KEPT_MS * 2, HOLD_MS)

    assert queue.slots == {}


def test_slot_of_a_writer_that_lands_in_it_is_used() -> None:
    queue = lost_often(2)

    queue.land("a", NOW + 210)

    assert queue.counts == SlotCounts(slots_given=2, slots_used=1, slots_lost=1, landed_after_losses=1)


def test_slot_of_a_writer_that_does_not_come_has_passed_once() -> None:
    queue = lost_often(2)
    passed = queue.slots["a"].closes_ms

    queue.release([], passed - 1, HOLD_MS)
    assert queue.counts.slots_passed == 0
    for now_ms in (passed, passed + 1, passed + KEPT_MS * 2):
        queue.release([], now_ms, HOLD_MS)
        queue.land("a", now_ms)
    assert queue.counts == SlotCounts(slots_given=2, slots_lost=1, slots_passed=1, landed_after_losses=1)


def test_writer_that_comes_late_has_let_its_slot_pass() -> None:
    queue = lost_often(1)

    lose(queue, "a", queue.slots["a"].closes_ms)

    assert queue.counts == SlotCounts(slots_given=1, slots_passed=1)


def test_writer_that_leaves_lets_its_slot_pass() -> None:
    queue = lost_often(1)
    assert lose(queue, "b", NOW)

    queue.leave(["a", "b", "c"])

    assert queue.counts == SlotCounts(slots_given=1, slots_passed=1)


def test_writer_without_further_retries_is_counted_as_given_up() -> None:
    queue = lost_often(4)

    assert not lose(queue, "a", NOW)

    assert (queue.counts.gave_up, queue.counts.landed_after_losses) == (1, 0)
    assert queue.slots == {}


def test_state_shows_those_who_wait_or_have_a_slot() -> None:
    queue = lost_often(2)
    for writer in ("b", "c"):
        assert lose(queue, writer, NOW + 50)
    over = queue.slots["a"].closes_ms

    during, after = queue.state_at(NOW + 60), queue.state_at(over)

    assert (during.queue_length, during.longest_wait_ms) == (3, 60)
    assert (after.queue_length, after.longest_wait_ms) == (2, over - NOW - 50)
    assert (during.window_ms, during.spacing_ms, during.interval_ms) == (
        queue.window_ms,
        queue.spacing_ms,
        queue.interval_ms,
    )
    assert LandingQueue().state_at(NOW) == QueueState(
        window_ms=FIRST_WINDOW_MS, spacing_ms=FIRST_WINDOW_MS, interval_ms=FIRST_WINDOW_MS
    )


def settled(queue: LandingQueue, now_ms: int) -> Rush | None:
    """Settle a queue as servers do: each reads what the last one has stored."""
    ended = queue.settle(now_ms)
    queue.counts = SlotCounts()
    return ended


def test_rush_lasts_until_the_queue_has_been_empty_for_a_while() -> None:
    queue = LandingQueue()
    lose(queue, "a", NOW)
    assert (settled(queue, NOW), queue.rush) == (None, None), "a writer alone is no queue"

    lose(queue, "b", NOW + 10)
    queue.release([], NOW + 10, HOLD_MS)
    assert settled(queue, NOW + 10) is None
    queue.land("a", NOW + 30)
    queue.land("b", NOW + 40)
    for now_ms in (NOW + 50, NOW + 49 + QUIET_MS):
        assert settled(queue, now_ms) is None

    ended = settled(queue, NOW + 50 + QUIET_MS)

    assert ended == Rush(
        since_ms=NOW + 10,
        empty_since_ms=NOW + 50,
        most_writers=2,
        longest_wait_ms=30,
        counts=SlotCounts(slots_given=1, slots_used=1),
    )
    assert queue.rush is None


def test_rush_goes_on_when_writers_come_soon_and_ends_when_they_come_late() -> None:
    queue = LandingQueue()
    for writer in ("a", "b"):
        lose(queue, writer, NOW)
    settled(queue, NOW)
    queue.leave(["a", "b"])
    settled(queue, NOW + 1)
    lose(queue, "c", NOW + QUIET_MS)
    assert settled(queue, NOW + QUIET_MS) is None
    queue.leave(["c"])
    settled(queue, NOW + QUIET_MS)

    for writer in ("a", "b", "c"):
        lose(queue, writer, NOW + 3 * QUIET_MS)
    ended = settled(queue, NOW + 3 * QUIET_MS)

    assert ended is not None
    assert (ended.since_ms, ended.most_writers) == (NOW, 2)
    assert queue.rush == Rush(since_ms=NOW + 3 * QUIET_MS, most_writers=3)


def test_client_that_has_gone_leaves() -> None:
    queue = lost_often(2)

    queue.leave(["a"])

    assert queue.closed_until_ms("b", NOW + 210) is None


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["lose", "land", "leave", "wait"]),
        st.integers(0, 5),
        # A clock may be set back a little: by more, and the queue is begun anew.
        st.integers(0, 400) | st.integers(-1_000, 100_000),
    ),
    max_size=60,
)
ANY_RETRIES = st.just(RETRIES) | st.builds(
    RetryRules,
    st.integers(0, 5),
    st.integers(0, 100) | st.integers(0, MAX_LONG),
    st.integers(0, 1_000) | st.integers(0, MAX_LONG),
)


@given(EVENTS, ANY_RETRIES)
def test_every_course_of_events_keeps_the_promises(
    events: list[tuple[str, int, int]], retries: RetryRules
) -> None:
    queue, now, sums = LandingQueue(), NOW, SlotCounts()
    for kind, number, passed_ms in events:
        now += passed_ms
        writer = f"writer{number}"
        if kind == "lose":
            lose(queue, writer, now, retries)
        elif kind == "land":
            queue.land(writer, now)
        elif kind == "leave":
            queue.leave([writer])
        waiting = [slot.writer for slot in queue.slots.values() if not slot.is_released]
        for released in queue.release(waiting, now, HOLD_MS):
            slot = queue.slots.get(released)
            if slot is None:
                continue  # it was forgotten, so long has it waited
            assert slot.opens_ms is not None
            assert slot.opens_ms >= now + slot.back_off_ms, "a slot opens when its writer can have come back"
            assert slot.closes_ms > slot.opens_ms
        closed = queue.closed_until_ms("newcomer", now)
        assert closed is None or closed > now
        at = queue.next_release_ms(now, HOLD_MS)
        assert at is None or at > now, "who may go has gone"
        queue.settle(now)
        sums.add(queue.counts)
        open_slots = sum(slot.is_released and not slot.has_passed for slot in queue.slots.values())
        ended = sums.slots_used + sums.slots_lost + sums.slots_passed
        assert sums.slots_given == ended + open_slots, "each slot is counted once"
        assert queue.state_at(now).queue_length >= open_slots
        copy = LandingQueue.from_json(json.loads(json.dumps(queue.to_json())))
        assert copy == queue
        queue = copy


def test_properties_say_how_clients_try_again() -> None:
    assert retries_of({}) == RetryRules(4, 100, 60_000)
    given_ = {
        "commit.retry.num-retries": "7",
        "commit.retry.min-wait-ms": "20",
        "commit.retry.max-wait-ms": "300",
    }
    assert retries_of(given_) == RetryRules(7, 20, 300)
    assert [RetryRules(7, 20, 300).back_off_ms(losses) for losses in (1, 2, 3, 4, 5, 6)] == [
        20,
        40,
        80,
        160,
        300,
        300,
    ]
    assert retries_of({"commit.retry.num-retries": "many", "commit.retry.min-wait-ms": "-1"}) == RetryRules(
        4, 0
    )
