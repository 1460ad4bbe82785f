from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from app.engine.model.data_types.moments import (
    date_text,
    days_of_date,
    months_since_1970,
    time_text,
    timestamp_text,
    units_of_time,
    units_of_timestamp,
)

MICROSECONDS = 10**6
NANOSECONDS = 10**9
EPOCH = date(1970, 1, 1)


def test_days_of_every_month_agree_with_the_calendar() -> None:
    for year in (1, 4, 100, 400, 1582, 1600, 1899, 1900, 1968, 1969, 1970, 2000, 2024, 2100, 9999):
        for month in range(1, 13):
            for day in (1, 28):
                expected = date(year, month, day)
                assert days_of_date(expected.isoformat()) == (expected - EPOCH).days
                assert date_text((expected - EPOCH).days) == expected.isoformat()


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("1970-01-01", 0),
        ("1969-12-31", -1),
        ("2024-02-29", 19_782),
        ("0000-03-01", -719_468),
        ("-0001-12-31", -719_529),
        ("+10000-01-01", 2_932_897),
        ("-9999-01-01", -4_371_587),
    ],
)
def test_years_beyond_four_digits_carry_their_sign(text: str, days: int) -> None:
    assert days_of_date(text) == days
    assert date_text(days) == text


def test_highest_and_lowest_days_are_written_and_read() -> None:
    for days in (2**31 - 1, -(2**31)):
        assert days_of_date(date_text(days)) == days


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024",
        "2024-1-1",
        "2024-13-01",
        "2024-00-10",
        "2024-01-00",
        "2024-02-30",
        "2023-02-29",
        "1900-02-29",
        "2024-04-31",
        "24-01-01",
        "2024-01-01 ",
        "2024/01/01",
        "\u0662\u0660\u0662\u0664-01-01",
        "9999999999-01-01",
    ],
)
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a date"):
        days_of_date(text)


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("00:00", 0),
        ("12:30", 45_000 * MICROSECONDS),
        ("22:31:08", 81_068 * MICROSECONDS),
        ("22:31:08.1", 81_068 * MICROSECONDS + 100_000),
        ("22:31:08.123456", 81_068 * MICROSECONDS + 123_456),
        ("22:31:08.123456000", 81_068 * MICROSECONDS + 123_456),
        ("23:59:59.999999", 86_400 * MICROSECONDS - 1),
    ],
)
def test_time_of_day(text: str, units: int) -> None:
    assert units_of_time(text, MICROSECONDS) == units


@pytest.mark.parametrize(
    "text", ["", "24:00", "12:60", "12:00:60", "12", "1:00", "12:00:00.", "12:00:00,5", "-1:00"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a time of day"):
        units_of_time(text, MICROSECONDS)


def test_fraction_finer_than_the_unit_is_refused() -> None:
    with pytest.raises(ValueError, match="too many decimal places"):
        units_of_time("12:00:00.1234567", MICROSECONDS)
    assert units_of_time("00:00:00.000000001", NANOSECONDS) == 1


def test_time_is_written_with_all_digits_of_its_unit() -> None:
    assert time_text(81_068_000_001, MICROSECONDS) == "22:31:08.000001"
    assert time_text(1, NANOSECONDS) == "00:00:00.000000001"


@pytest.mark.parametrize(
    ("text", "with_zone", "units"),
    [
        ("1970-01-01T00:00:00.000001", False, 1),
        ("1969-12-31T23:59:59.999999", False, -1),
        ("1970-01-01T00:00:00Z", True, 0),
        ("1970-01-01T00:00:00+00:00", True, 0),
        ("1970-01-01T01:00:00+01:00", True, 0),
        ("1969-12-31T16:30-07:30", True, 0),
    ],
)
def test_timestamp(text: str, with_zone: bool, units: int) -> None:
    assert units_of_timestamp(text, MICROSECONDS, with_zone=with_zone) == units


@pytest.mark.parametrize(
    ("text", "with_zone", "reason"),
    [
        ("1970-01-01", False, "not a timestamp"),
        ("1970-01-01 00:00:00", False, "not a timestamp"),
        ("1970-01-01T00:00:00Z", False, "not a time of day"),
        ("1970-01-01T00:00:00+00:00", False, "not a time of day"),
        ("1970-01-01T00:00:00", True, "needs an offset"),
        ("1970-01-01T00:00:00+1:00", True, "needs an offset"),
        ("1970-02-30T00:00:00Z", True, "not a date"),
    ],
)
def test_what_is_no_timestamp_is_refused(text: str, with_zone: bool, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        units_of_timestamp(text, MICROSECONDS, with_zone=with_zone)


def test_timestamps_agree_with_the_calendar() -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    for moment in (datetime(1582, 10, 4, 3, 2, 1, 999_999, UTC), datetime(2024, 2, 29, 23, 59, 59, 1, UTC)):
        units = (moment - epoch) // timedelta(microseconds=1)
        text = moment.isoformat(timespec="microseconds")
        assert timestamp_text(units, MICROSECONDS, with_zone=True) == text
        assert timestamp_text(units, MICROSECONDS, with_zone=False) == text.removesuffix("+00:00")
        assert units_of_timestamp(text, MICROSECONDS, with_zone=True) == units


@pytest.mark.parametrize(
    "text", ["1968-02-29", "1969-12-31", "1970-01-01", "2000-02-29", "2100-03-01", "-0001-12-31"]
)
def test_month_of_a_day(text: str) -> None:
    year, month = int(text.rpartition("-")[0].rpartition("-")[0]), int(text[-5:-3])

    assert months_since_1970(days_of_date(text)) == (year - 1970) * 12 + month - 1
