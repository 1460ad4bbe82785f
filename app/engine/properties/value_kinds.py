"""Kinds of values that properties have: what is accepted, and what is said of the rest."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass

from app.engine.model.document import MAX_INT, MAX_LONG
from app.engine.model.settings.properties import int_property
from app.errors import InvalidUpdate

_SHOWN = 100
"""How many characters of a value that is refused are repeated."""
_METRICS_MODE = re.compile(r"none|counts|full|truncate\((?P<length>[0-9]{1,9})\)")


class ValueKind(ABC):
    """What values a property may have."""

    @property
    @abstractmethod
    def name(self) -> str:
        """One or two words for it, such as "bytes" or "true or false"."""

    @abstractmethod
    def flaw(self, value: str) -> str | None:
        """Return what is wrong with a value, beginning with "must be"; None if nothing is."""


@dataclass(frozen=True, slots=True)
class AnyText(ValueKind):
    """Anything."""

    of: str = "text"

    @property
    def name(self) -> str:
        return self.of

    def flaw(self, value: str) -> str | None:  # noqa: ARG002 - whatever it is
        return None


@dataclass(frozen=True, slots=True)
class WholeNumber(ValueKind):
    """A whole number within bounds."""

    minimum: int | None = 0
    maximum: int = MAX_INT
    unit: str = "number"

    @property
    def name(self) -> str:
        return self.unit

    def flaw(self, value: str) -> str | None:
        try:
            number = int_property({"": value}, "", 0)
        except InvalidUpdate:
            return f"must be a whole number, found {value[:_SHOWN]!r}"
        if self.minimum is not None and number < self.minimum:
            return f"must be at least {self.minimum}, found {number}"
        if abs(number) > self.maximum:
            return f"must be at most {self.maximum}, found {number}"
        return None


@dataclass(frozen=True, slots=True)
class Fraction(ValueKind):
    """A number between 0 and 1."""

    with_bounds: bool = False
    """Whether 0 and 1 are allowed themselves."""

    @property
    def name(self) -> str:
        return "0 to 1" if self.with_bounds else "between 0 and 1"

    def flaw(self, value: str) -> str | None:
        try:
            # As strict as clients in other languages: no underscores, no digits of other scripts.
            number = float(value) if value.isascii() and "_" not in value else -1.0
        except ValueError:
            number = -1.0
        if 0 < number < 1 or (self.with_bounds and number in (0, 1)):
            return None
        words = "a number from 0 to 1" if self.with_bounds else "a number greater than 0 and less than 1"
        return f"must be {words}, found {value[:_SHOWN]!r}"


@dataclass(frozen=True, slots=True)
class OneOf(ValueKind):
    """One of some names, in any case unless clients compare exactly."""

    names: tuple[str, ...]
    exactly: bool = False

    @property
    def name(self) -> str:
        return self._in_words()

    def flaw(self, value: str) -> str | None:
        given = value if self.exactly else value.strip().lower()
        return None if given in self.names else f"must be {self._in_words()}, found {value[:_SHOWN]!r}"

    def _in_words(self) -> str:
        *first, last = self.names
        return f"{', '.join(first)} or {last}" if first else last


SWITCH = OneOf(("true", "false"))


@dataclass(frozen=True, slots=True)
class ListOf(ValueKind):
    """Some of some names, with commas between them."""

    names: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"list of {', '.join(self.names)}"

    def flaw(self, value: str) -> str | None:
        given = {name.strip().lower() for name in value.split(",")} - {""}
        if given <= set(self.names):
            return None
        return f"must be a comma-separated list of {', '.join(self.names)}, found {value[:_SHOWN]!r}"


@dataclass(frozen=True, slots=True)
class NumberOf(ValueKind):
    """One of some whole numbers."""

    numbers: tuple[int, ...]

    @property
    def name(self) -> str:
        *first, last = map(str, self.numbers)
        return f"{', '.join(first)} or {last}"

    def flaw(self, value: str) -> str | None:
        return None if value in map(str, self.numbers) else f"must be {self.name}, found {value[:_SHOWN]!r}"


class MetricsMode(ValueKind):
    """Which metrics of a column writers keep."""

    @property
    def name(self) -> str:
        return "none, counts, truncate(length) or full"

    def flaw(self, value: str) -> str | None:
        found = _METRICS_MODE.fullmatch(value.strip().lower())
        if found is not None and (found["length"] is None or int(found["length"]) > 0):
            return None
        return f"must be {self.name}, found {value[:_SHOWN]!r}"


class JsonList(ValueKind):
    """JSON text of a list."""

    @property
    def name(self) -> str:
        return "JSON"

    def flaw(self, value: str) -> str | None:
        try:
            is_list = isinstance(json.loads(value), list)
        except (ValueError, RecursionError):
            is_list = False
        return None if is_list else f"must be a list in JSON, found {value[:_SHOWN]!r}"


class DailyWindows(ValueKind):
    """Times of day in UTC, as `22:00-06:00`, with commas between them."""

    @property
    def name(self) -> str:
        return "times of day, as 22:00-06:00"

    def flaw(self, value: str) -> str | None:
        if windows_of(value) is not None:
            return None
        return f"must be times of day in UTC such as 22:00-06:00, with commas between them, found {value[:_SHOWN]!r}"


_WINDOW = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])")


def windows_of(value: str) -> list[tuple[int, int]] | None:
    """Return daily windows as minutes from midnight; the end may be before the beginning.

    Without any window it is the whole day; None if the text is something else.
    """
    found = [_WINDOW.fullmatch(part.strip()) for part in value.split(",") if part.strip()]
    windows = []
    for match in found:
        if match is None:
            return None
        hour, minute, end_hour, end_minute = map(int, match.groups())
        windows.append((hour * 60 + minute, end_hour * 60 + end_minute))
    return windows


def bytes_from(minimum: int) -> WholeNumber:
    """Return the kind of a number of bytes."""
    return WholeNumber(minimum, MAX_LONG, "bytes")


def milliseconds(maximum: int = MAX_LONG) -> WholeNumber:
    """Return the kind of a duration."""
    return WholeNumber(0, maximum, "milliseconds")
