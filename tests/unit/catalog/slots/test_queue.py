from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.catalog.slots.queue import KEPT_MS, MARGIN_MS, LandingQueue, RetryRules
from app.catalog.slots.retries import retries_of

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


def test_client_that_has_gone_leaves() -> None:
    queue = lost_often(2)

    queue.leave(["a"])

    assert queue.closed_until_ms("b", NOW + 210) is None


EVENTS = st.lists(
    st.tuples(st.sampled_from(["lose", "land", "leave", "wait"]), st.integers(0, 5), st.integers(0, 400)),
    max_size=60,
)


@given(EVENTS)
def test_every_course_of_events_keeps_the_promises(events: list[tuple[str, int, int]]) -> None:
    queue, now = LandingQueue(), NOW
    for kind, number, passed_ms in events:
        now += passed_ms
        writer = f"writer{number}"
        if kind == "lose":
            lose(queue, writer, now)
        elif kind == "land":
            queue.land(writer, now)
        elif kind == "leave":
            queue.leave([writer])
        waiting = [slot.writer for slot in queue.slots.values() if not slot.is_released]
        for released in queue.release(waiting, now, HOLD_MS):
            slot = queue.slots[released]
            assert slot.opens_ms is not None
            assert slot.opens_ms >= now + slot.back_off_ms, "a slot opens when its writer can have come back"
            assert slot.closes_ms > slot.opens_ms
        closed = queue.closed_until_ms("newcomer", now)
        assert closed is None or closed > now
        at = queue.next_release_ms(now, HOLD_MS)
        assert at is None or at > now, "who may go has gone"
        copy = LandingQueue.from_json(json.loads(json.dumps(queue.to_json())))
        assert copy == queue


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
