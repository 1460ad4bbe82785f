"""The queue under simulated writers: what users are promised, for loads of many shapes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders.simulated_writers import Course, Load, Simulation

SEEDS = range(4)
FAST = Load(writers=32, rounds=10, load_ms=3, prepare_ms=6, commit_ms=5)
COMMON = Load(writers=32, rounds=5, load_ms=10, prepare_ms=60, commit_ms=8)
HEAVY = Load(writers=16, rounds=3, load_ms=60, prepare_ms=300, commit_ms=130)


ON_SEVERAL = [
    Load(
        writers=writers,
        rounds=160 // writers,
        load_ms=22,
        prepare_ms=62,
        commit_ms=55,
        servers=servers,
        lag_ms=10,
    )
    for writers, servers in ((8, 2), (32, 2), (32, 3))
]
"""Servers on one database, with files in a store that takes 20 ms for each call."""
UNKNOWN = [
    replace(load, has_connections=False)
    for load in (
        FAST,
        COMMON,
        HEAVY,
        Load(writers=64, rounds=4, load_ms=10, prepare_ms=60, commit_ms=8),
        Load(writers=8, rounds=20, load_ms=10, prepare_ms=60, commit_ms=8),
    )
]
"""Writers behind a proxy: no load is held back, and slots alone have to do."""
SHARING = [
    replace(load, shares_connections=True)
    for load in (
        FAST,
        COMMON,
        HEAVY,
        replace(COMMON, plan_ms=100),
        Load(writers=64, rounds=1, load_ms=3, prepare_ms=2, commit_ms=5),
        *(
            replace(load, rounds=5, servers=servers, lag_ms=10)
            for load in (FAST, COMMON)
            for servers in (2, 4)
        ),
        # Each of two threads mostly finds the connection that it had before, and each connection leads elsewhere.
        *(
            Load(writers=writers, rounds=33, load_ms=15, prepare_ms=1000, commit_ms=20, servers=2, lag_ms=10)
            for writers in (2, 3)
        ),
    )
]
"""Writers that are threads of one client: any of them may load, and commit, on any connection."""


def courses(load: Load, *, with_slots: bool = True) -> list[Course]:
    return [Simulation(load, seed, with_slots=with_slots).run() for seed in SEEDS]


@pytest.mark.parametrize(
    "load",
    [
        FAST,
        COMMON,
        HEAVY,
        Load(writers=64, rounds=1, load_ms=3, prepare_ms=2, commit_ms=5),
        Load(writers=64, rounds=4, load_ms=10, prepare_ms=60, commit_ms=8),
        Load(writers=8, rounds=20, load_ms=10, prepare_ms=60, commit_ms=8),
        Load(writers=2, rounds=50, load_ms=10, prepare_ms=60, commit_ms=8),
        Load(writers=32, rounds=5, load_ms=10, prepare_ms=60, commit_ms=8, lag_ms=15),
        *ON_SEVERAL,
        *UNKNOWN,
        *SHARING,
        replace(FAST, plan_ms=10),
    ],
    ids=str,
)
def test_no_writer_gives_up(load: Load) -> None:
    for course in courses(load):
        assert course.gave_up == 0
        assert len(course.landed_at_ms) == load.writers * load.rounds


@pytest.mark.parametrize("load", [FAST, COMMON], ids=["fast", "common"])
def test_without_slots_writers_do_give_up(load: Load) -> None:
    assert sum(course.gave_up for course in courses(load, with_slots=False)) > 0


def test_writers_that_never_come_back_cost_their_slots_only() -> None:
    # Where loads are held back, few writers lose a race that they could vanish after.
    load = replace(COMMON, vanishing=0.1, has_connections=False)
    for course, whole in zip(courses(load), courses(replace(load, vanishing=0)), strict=True):
        assert course.vanished > 5
        assert course.gave_up == 0
        assert course.per_second > whole.per_second / 2


@pytest.mark.parametrize("slowness", [10, 30])
def test_expensive_overwrites_land_among_fast_appends(slowness: float) -> None:
    load = Load(writers=16, rounds=20, load_ms=3, prepare_ms=6, commit_ms=5, slow=2, slowness=slowness)
    for course in courses(load):
        assert course.gave_up == 0
        assert len(course.slow_waits_ms) == load.slow * load.rounds
    without = courses(load, with_slots=False)
    assert sum(len(course.slow_waits_ms) for course in without) < load.slow * load.rounds * len(without)


@pytest.mark.parametrize("load", [FAST, COMMON, HEAVY], ids=["fast", "common", "heavy"])
def test_no_writer_waits_much_longer_than_the_others(load: Load) -> None:
    for known, most_shares in ((load, 2), (replace(load, has_connections=False), 3.5)):
        for course in courses(known):
            fair_share_ms = 1000 * load.writers / course.per_second
            assert max(course.waits_ms) < most_shares * fair_share_ms


@pytest.mark.parametrize("ask_ms", [0, 3, 6])
@pytest.mark.parametrize(("writers", "most_shares"), [(8, 3), (32, 2)])
def test_writers_of_one_server_do_not_wait_long_for_those_of_another(
    writers: int, most_shares: float, ask_ms: float
) -> None:
    # Each server has the table for a while: where files are near, that may be the time of many commits.
    load = Load(
        writers, 320 // writers, load_ms=2, prepare_ms=3, commit_ms=3, servers=2, lag_ms=2, ask_ms=ask_ms
    )
    for course in courses(load):
        fair_share_ms = 1000 * load.writers / course.per_second
        assert max(course.waits_ms) < most_shares * fair_share_ms


@pytest.mark.parametrize("load", [FAST, COMMON, replace(FAST, writers=8)], ids=["fast", "common", "few"])
def test_writers_that_are_known_land_as_fast_as_without_slots_and_seldom_try_twice(load: Load) -> None:
    for course, free in zip(courses(load), courses(load, with_slots=False), strict=True):
        assert course.per_second > 0.95 * free.per_second
        assert course.attempts < 1.25 * len(course.landed_at_ms)


@pytest.mark.parametrize("load", [COMMON, HEAVY], ids=["common", "heavy"])
@pytest.mark.parametrize("unknown", [{"has_connections": False}, {"shares_connections": True}], ids=str)
def test_writers_that_take_long_land_at_most_of_the_rate_without_slots_though_they_are_not_known(
    load: Load, unknown: dict[str, Any]
) -> None:
    load = replace(load, rounds=10, **unknown)
    for course, free in zip(courses(load), courses(load, with_slots=False), strict=True):
        assert course.per_second > 0.6 * free.per_second


@pytest.mark.parametrize("load", ON_SEVERAL, ids=str)
def test_writers_on_several_servers_land_as_fast_as_on_one_and_seldom_try_twice(load: Load) -> None:
    for course, alone in zip(courses(load), courses(replace(load, servers=1)), strict=True):
        assert course.per_second > 0.9 * alone.per_second
        assert course.attempts < 1.25 * len(course.landed_at_ms)


def test_the_queue_is_empty_when_all_have_landed() -> None:
    simulation = Simulation(COMMON, 1, with_slots=True)
    simulation.run()
    assert simulation.queue is not None
    assert simulation.queue.slots == {}
