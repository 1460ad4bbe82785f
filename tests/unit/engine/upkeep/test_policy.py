"""The policy of upkeep: the nearest place that says anything decides."""

from __future__ import annotations

import pytest

from app.engine.model.jobs import Job
from app.engine.properties.known import Origin
from app.engine.upkeep.policy import Policy

ALL, EXPIRY = "icetower.maintenance", "icetower.maintenance.expire-snapshots"
MINUTE_MS = 60_000


@pytest.mark.parametrize(
    ("table", "namespace", "warehouse", "is_on", "said_by"),
    [
        ({}, {}, {}, False, (Origin.DEFAULT, ALL)),
        ({}, {}, {ALL: "recommended"}, True, (Origin.WAREHOUSE, ALL)),
        ({ALL: "off"}, {EXPIRY: "on"}, {ALL: "recommended"}, False, (Origin.TABLE, ALL)),
        ({ALL: "off", EXPIRY: "on"}, {}, {}, True, (Origin.TABLE, EXPIRY)),
        ({}, {EXPIRY: "off"}, {ALL: "recommended"}, False, (Origin.NAMESPACE, EXPIRY)),
        ({EXPIRY: "sometimes"}, {}, {ALL: " Recommended "}, True, (Origin.WAREHOUSE, ALL)),
    ],
)
def test_nearest_place_decides(
    table: dict[str, str],
    namespace: dict[str, str],
    warehouse: dict[str, str],
    is_on: bool,
    said_by: tuple[Origin, str],
) -> None:
    policy = Policy({Origin.TABLE: table, Origin.NAMESPACE: namespace, Origin.WAREHOUSE: warehouse})

    switch = policy.switch(Job.EXPIRE_SNAPSHOTS)

    assert (switch.is_on, (switch.origin, switch.said_by)) == (is_on, said_by)


def test_recommended_is_all_but_statistics_of_tables() -> None:
    policy = Policy({Origin.TABLE: {ALL: "recommended"}})

    assert [job for job in Job if not policy.switch(job).is_on] == [Job.TABLE_STATISTICS]
    assert not any(Policy({}).switch(job).is_on for job in Job)


def test_threshold_without_sense_counts_as_not_set() -> None:
    policy = Policy({Origin.TABLE: {"icetower.maintenance.expire-snapshots.min-snapshots": "many"}})

    assert policy.number("expire-snapshots.min-snapshots") == 20
    assert policy.number("daily-bytes") is None


@pytest.mark.parametrize(
    ("windows", "allowed"),
    [
        ("", [0, 700, 1439]),
        ("22:00-06:00", [0, 359, 1320, 1439]),
        ("06:00-22:00", [360, 700, 1319]),
        ("11:00-12:00,23:00-23:30", [700, 1380]),
    ],
)
def test_jobs_begin_inside_windows(windows: str, allowed: list[int]) -> None:
    policy = Policy({Origin.TABLE: {"icetower.maintenance.windows": windows}})
    day_ms = 20_000 * 86_400_000

    minutes = [0, 359, 360, 700, 1319, 1320, 1380, 1439]
    inside = [minute for minute in minutes if policy.allows(day_ms + minute * MINUTE_MS)]

    assert [minute for minute in inside if minute in allowed] == allowed
    assert windows == "" or len(inside) < len(minutes)


def test_every_setting_is_shown_with_its_origin() -> None:
    policy = Policy({Origin.NAMESPACE: {ALL: "recommended"}})

    shown = {item.name: (item.value, item.origin) for item in policy.settings()}

    assert shown[ALL] == ("recommended", Origin.NAMESPACE)
    assert shown["icetower.maintenance.expire-snapshots.min-snapshots"] == ("20", Origin.DEFAULT)
    assert len(shown) == len(policy.settings())
