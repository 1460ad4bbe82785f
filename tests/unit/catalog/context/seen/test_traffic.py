"""The record of traffic: what was counted, of the tables that were busy last."""

from __future__ import annotations

from app.catalog.context.seen.traffic import Counts, QueueState, Traffic
from app.engine.model.identifiers import Namespace, TableIdentifier


class Watch:
    """A clock that stands still."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000_000

    def __call__(self) -> int:
        return self.now_ms


def key(name: str, warehouse: str = "wh") -> tuple[str, TableIdentifier]:
    return warehouse, TableIdentifier(Namespace(("ns",)), name)


def test_numbers_add_up() -> None:
    traffic = Traffic(Watch())

    traffic.count(key("t"), moves=1, together=3)
    traffic.count(key("t"), landed=3, rebased=1)
    traffic.count(key("t"), moves=1, together=1, landed=1)
    traffic.count(key("t"), refused=2, races_lost=1)

    found = traffic.of(key("t"))
    assert found.counts == Counts(landed=4, moves=2, refused=2, races_lost=1, rebased=1)
    assert (found.most_together, found.landed_last_minute, found.refused_last_minute) == (3, 4, 2)


def test_what_is_shown_does_not_change_any_more() -> None:
    traffic = Traffic(Watch())
    traffic.count(key("t"), landed=1)

    found = traffic.of(key("t"))
    traffic.count(key("t"), landed=1)

    assert found.counts.landed == 1


def test_the_last_minute_passes() -> None:
    watch = Watch()
    traffic = Traffic(watch)
    seen = []
    for second in range(0, 130, 10):
        if second in (0, 30):
            traffic.count(key("t"), landed=5)
        seen.append(traffic.of(key("t")).landed_last_minute)
        watch.now_ms += 10_000
    assert seen == [5, 5, 5, 10, 10, 10, 5, 5, 5, 0, 0, 0, 0]

    traffic.count(key("t"), landed=1)
    watch.now_ms += 10_000_000

    assert traffic.of(key("t")).landed_last_minute == 0
    assert traffic.of(key("t")).counts.landed == 11


def test_a_clock_that_goes_back_does_no_harm() -> None:
    watch = Watch()
    traffic = Traffic(watch)
    traffic.count(key("t"), landed=1)
    watch.now_ms -= 5_000

    traffic.count(key("t"), landed=1)

    assert traffic.of(key("t")).landed_last_minute == 2


def test_the_last_minute_passes_after_the_clock_was_set_back_by_an_hour() -> None:
    watch = Watch()
    traffic = Traffic(watch)
    traffic.count(key("t"), landed=1)
    watch.now_ms -= 3_600_000
    seen = []
    for _ in range(3):
        traffic.count(key("t"), landed=2)
        seen.append(traffic.of(key("t")).landed_last_minute)
        watch.now_ms += 70_000

    assert seen == [2, 2, 2]


def test_another_table_of_the_name_begins_at_zero() -> None:
    traffic = Traffic(Watch())
    traffic.count(key("t"), refused=1)
    traffic.count(key("t"), uuid="first", landed=3)
    assert traffic.of(key("t"), "first").counts == Counts(landed=3, refused=1)
    assert traffic.of(key("t"), "second").counts == Counts()

    traffic.count(key("t"), uuid="second", moves=1)
    traffic.count(key("t"), landed=1)

    assert traffic.of(key("t"), "second").counts == Counts(landed=1, moves=1)
    assert [found.landed_last_minute for found in traffic.busiest(9)] == [1]


def test_a_quiet_table_goes_when_there_are_too_many() -> None:
    traffic = Traffic(Watch(), most_tables=2)
    for name in ("a", "b", "a", "c"):
        traffic.count(key(name), landed=1)

    assert [found.identifier.name for found in traffic.busiest(9)] == ["a", "c"]
    assert traffic.of(key("b")).counts == Counts()
    assert traffic.of(key("b")).last_ms == 0


def test_the_busiest_of_a_warehouse_come_first() -> None:
    watch = Watch()
    traffic = Traffic(watch)
    traffic.count(key("once"), landed=100)
    watch.now_ms += 120_000
    traffic.count(key("now"), landed=1)
    traffic.count(key("contended"), refused=9)
    traffic.count(key("other", "elsewhere"), landed=50)

    names = [found.identifier.name for found in traffic.busiest(2, "wh")]

    assert names == ["contended", "now"]
    assert len(traffic.busiest(9)) == 4


def test_queue_is_kept_as_it_was_seen_last() -> None:
    traffic = Traffic(Watch(), most_tables=2)
    traffic.see_queue(key("t"), QueueState(queue_length=2))
    traffic.see_queue(key("t"), QueueState(queue_length=3, answers_held=1))
    traffic.count(key("t"), slots_given=2)

    found = traffic.of(key("t"))
    assert (found.queue, found.counts) == (
        QueueState(queue_length=3, answers_held=1),
        Counts(slots_given=2),
    )
    for name in ("u", "v"):
        traffic.see_queue(key(name), QueueState(queue_length=1))
    assert traffic.of(key("t")).queue == QueueState()
