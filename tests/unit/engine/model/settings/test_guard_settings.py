from __future__ import annotations

from app.engine.model.settings.guard_settings import (
    GUARD,
    GUARD_IGNORE,
    FindingKind,
    GuardMode,
    GuardSettings,
    guard_settings,
)


def test_a_table_without_properties_is_watched() -> None:
    assert guard_settings({}, {}) == GuardSettings(GuardMode.WARN, frozenset())


def test_the_first_that_says_anything_counts_each_property_by_itself() -> None:
    override, table = {GUARD: "reject"}, {GUARD: "off", GUARD_IGNORE: "outside-location"}

    settings = guard_settings(override, table, {GUARD_IGNORE: "summary-totals"})

    assert settings == GuardSettings(GuardMode.REJECT, frozenset({FindingKind.OUTSIDE_LOCATION}))


def test_values_are_read_like_other_switches() -> None:
    settings = guard_settings({GUARD: " Off ", GUARD_IGNORE: " summary-totals, ,MISSING-FILE "})

    assert settings.mode is GuardMode.OFF
    assert settings.ignored == {FindingKind.SUMMARY_TOTALS, FindingKind.MISSING_FILE}


def test_nothing_to_ignore_is_said_too() -> None:
    assert guard_settings({GUARD_IGNORE: ""}, {GUARD_IGNORE: "missing-file"}).ignored == frozenset()


def test_what_makes_no_sense_says_nothing() -> None:
    made_up = {GUARD: "maybe", GUARD_IGNORE: "missing-file, made-up"}

    assert guard_settings(made_up, {GUARD: "reject"}) == GuardSettings(GuardMode.REJECT)
