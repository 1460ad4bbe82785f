"""Dates, times and timestamps: from numbers since 1970 to ISO text and back, for any year."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_S: Final = 86_400
MICROSECONDS: Final = 10**6
UNITS_A_SECOND: Final = {
    "timestamp": MICROSECONDS,
    "timestamptz": MICROSECONDS,
    "timestamp_ns": 10**9,
    "timestamptz_ns": 10**9,
}
"""How many units of a type's values are one second."""
UNITS_A_DAY: Final = {"date": 1, **{kind: units * _DAY_S for kind, units in UNITS_A_SECOND.items()}}
"""How many units of a type's values are one day."""
_ERA_DAYS: Final = 146_097
"""Days in 400 years, after which the calendar repeats."""
_DAYS_TO_1970: Final = 719_468
"""From 1 March of the year 0, where the count of an era starts, to 1 January 1970."""
_MONTHS_TO_1970: Final = 1969 * 12 + 10
_DATE: Final = re.compile(r"([+-]?\d{4,9})-(\d{2})-(\d{2})", re.ASCII)
_TIME: Final = re.compile(r"(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?", re.ASCII)
_OFFSET: Final = re.compile(r"([+-])(\d{2}):(\d{2})", re.ASCII)
_MONTH_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _from_march(days: int) -> tuple[int, int, int]:
    """Return a day's year, month and day of the year, in years that start in March.

    In such a year the day that a leap year adds is the last one.
    """
    era, day_of_era = divmod(days + _DAYS_TO_1970, _ERA_DAYS)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    return year_of_era + 400 * era, (5 * day_of_year + 2) // 153, day_of_year


def months_since_1970(days: int) -> int:
    """Return the number of a day's month; January 1970 is 0, the month before is -1."""
    year, month, _ = _from_march(days)
    return year * 12 + month - _MONTHS_TO_1970


def date_text(days: int) -> str:
    """Return `2017-11-16`; years beyond four digits carry their sign."""
    shifted_year, shifted_month, day_of_year = _from_march(days)
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    year = shifted_year + (1 if month <= 2 else 0)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{month:02}-{day:02}"


def days_of_date(text: str) -> int:
    """Return the days from 1970-01-01 to a date.

    Raises:
        ValueError: not a date of the calendar.
    """
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError(f"not a date: {text[:50]!r}")
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    if not 1 <= month <= 12 or not 1 <= day <= _days_in_month(year, month):
        raise ValueError(f"not a date of the calendar: {text[:50]!r}")
    shifted_year = year - (1 if month <= 2 else 0)
    era, year_of_era = divmod(shifted_year, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * _ERA_DAYS + day_of_era - _DAYS_TO_1970


def _days_in_month(year: int, month: int) -> int:
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and is_leap else _MONTH_DAYS[month - 1]


def time_text(units: int, units_a_second: int) -> str:
    """Return `22:31:08.123456`; the unit decides how many digits the fraction has."""
    seconds, fraction = divmod(units, units_a_second)
    digits = len(str(units_a_second)) - 1
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:0{digits}}"


def units_of_time(text: str, units_a_second: int) -> int:
    """Return the units since midnight.

    Raises:
        ValueError: not a time of day, or with a finer fraction than the unit.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"not a time of day: {text[:50]!r}")
    hours, minutes, seconds = int(match[1]), int(match[2]), int(match[3] or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError(f"not a time of day: {text[:50]!r}")
    fraction = int((match[4] or "").ljust(9, "0"))
    units, too_fine = divmod(fraction * units_a_second, 10**9)
    if too_fine:
        raise ValueError(f"too many decimal places for its type: {text[:50]!r}")
    return (hours * 3600 + minutes * 60 + seconds) * units_a_second + units


def timestamp_text(units: int, units_a_second: int, *, with_zone: bool) -> str:
    """Return `2017-11-16T22:31:08.123456`, followed by `+00:00` if it has a zone."""
    days, rest = divmod(units, _DAY_S * units_a_second)
    return f"{date_text(days)}T{time_text(rest, units_a_second)}{'+00:00' if with_zone else ''}"


def units_of_timestamp(text: str, units_a_second: int, *, with_zone: bool) -> int:
    """Return the units since 1970; with a zone, any offset is taken into account.

    Raises:
        ValueError: not a timestamp, or it has a zone where it must not, or the other way round.
    """
    day, separator, rest = text.partition("T")
    if not separator:
        raise ValueError(f"not a timestamp: {text[:50]!r}")
    offset_s = 0
    if with_zone and rest.endswith("Z"):
        rest = rest[:-1]
    elif with_zone:
        match = _OFFSET.fullmatch(rest[-6:])
        if match is None:
            raise ValueError(f"a timestamp with a zone needs an offset: {text[:50]!r}")
        offset_s = (int(match[2]) * 3600 + int(match[3]) * 60) * (-1 if match[1] == "-" else 1)
        rest = rest[:-6]
    units = days_of_date(day) * _DAY_S * units_a_second + units_of_time(rest, units_a_second)
    return units - offset_s * units_a_second


def moment_text(epoch_ms: int) -> str:
    """Return a moment as `2026-11-20T10:00:00.000Z`.

    Raises:
        OverflowError: it is not in the years 1 to 9999.
    """
    moment = _EPOCH + timedelta(milliseconds=epoch_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
