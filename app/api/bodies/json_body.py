"""Request bodies: strict JSON, checked against a model."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from difflib import get_close_matches
from typing import NoReturn, Self, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from app.engine.model.document import kebab
from app.error_frames import let_go_of_frames
from app.errors import InvalidRequest

MAX_REASON_LENGTH = 900
_SHOWN_NAME = 60
_MAX_LONG_DIGITS = 19
_MIN_LONG, _MAX_LONG = -(2**63), 2**63 - 1
_BEFORE_VALUES = b",[{"
"""Of these, a document has at least as many as values, but for one: they may be part of texts too."""
_DIGITS_AND_EXPONENTS = bytes(
    ord("0") if 48 <= byte <= 57 else ord("e") if byte in b"eE" else byte if byte in b"+" else ord(" ")
    for byte in range(256)
)
MOST_COLUMNS = Field(max_length=10_000)
"""For field ids: clients can choose numbers with which a dictionary takes time with the square of their number."""
_LARGE_BYTES = 1024 * 1024
_LARGE_BODY = threading.Lock()
"""Large bodies are parsed one by one: a parser lets no other thread run, and the event loop has to get its turn."""
_LENGTH = re.compile(r"^\w+ should have (.*) after validation")
_LONG = b"0" * _MAX_LONG_DIGITS
_LARGE_EXPONENTS = (b"e000", b"e+000")


class Body(BaseModel):
    """The JSON object of a request. Unknown fields are ignored: clients of newer versions send more."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=kebab, protected_namespaces=())


class ExtensionBody(Body):
    """A body of Icetower's own. Unknown fields are refused: a misspelled one would do what was not asked for."""

    # Kept until they are refused below: "forbid" would collect an error for each of very many.
    model_config = ConfigDict(extra="allow")

    @model_validator(mode="after")
    def _has_no_unknown_field(self) -> Self:
        if unknown := self.unknown_field(self.__pydantic_extra__ or ()):
            raise ValueError(unknown)
        return self

    @classmethod
    def unknown_field(cls, names: Iterable[str]) -> str | None:
        """Return what to say about the first name that no field has; None if all are known."""
        known = [field.alias or own for own, field in cls.model_fields.items()]
        return next((unknown_name("field", name, known) for name in names if name not in known), None)


BodyT = TypeVar("BodyT", bound=Body)


def check_count(raw: bytes, most: int) -> None:
    """Refuse JSON with too many values, before any of them is made and takes memory.

    Raises:
        InvalidRequest: it has more commas and opening brackets than that.
    """
    if len(raw) > most and len(raw) - len(raw.translate(None, _BEFORE_VALUES)) > most:
        raise InvalidRequest(
            f"Invalid body: it has more than {most} values, counted by commas and opening brackets; the setting "
            "max_body_values limits them"
        )


def parse_body(model: type[BodyT], raw: bytes) -> BodyT:
    """Return the body that the bytes hold; raises `InvalidRequest` with the first wrong part."""
    if not raw.strip():
        raise InvalidRequest("Invalid body: it is empty, a JSON object is expected")
    with _LARGE_BODY if len(raw) > _LARGE_BYTES else nullcontext():
        try:
            _check_numbers(raw)
            return model.model_validate_json(raw, by_alias=True, by_name=False)
        except ValidationError as error:
            fault = _misspelled(model, error, raw) or describe(error, raw)
            let_go_of_frames(error)
        except RecursionError:
            fault = "it is nested too deeply"
    # Not from the error: it may have very many faults, and holds the body.
    raise InvalidRequest(f"Invalid body: {fault}")


def _misspelled(model: type[Body], error: ValidationError, raw: bytes) -> str | None:
    """Return which field is unknown where another one is missing: most likely that one."""
    first = error.errors(include_url=False, include_input=False)[0]
    if not issubclass(model, ExtensionBody) or first["type"] != "missing" or len(first["loc"]) != 1:
        return None
    given = _value_in(raw)
    return model.unknown_field(given) if isinstance(given, dict) else None


def _value_in(raw: bytes) -> object:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None


def unknown_name(what: str, name: str, known: Sequence[str]) -> str:
    """Return what to say about a name that is not known, and which one was probably meant."""
    near = get_close_matches(kebab(name[:_SHOWN_NAME]).lower(), known, n=1)
    if near:
        return f"unknown {what} {name[:_SHOWN_NAME]!r}; did you mean {near[0]}?"
    return f"unknown {what} {name[:_SHOWN_NAME]!r}; known are: {', '.join(known) or 'none'}"


def describe(error: ValidationError, raw: bytes) -> str:
    """Return the path of the first wrong part, and what is wrong with it."""
    path, value = "", _value_in(raw)
    while True:
        first = error.errors(include_url=False, include_input=False)[0]
        path, value = _follow(path, value, first["loc"], first["type"])
        cause = first.get("ctx", {}).get("error")
        if not isinstance(cause, ValidationError):
            break
        # A type inside a type is parsed by its own function, which raises its own error.
        error = cause
    reason, context = first["msg"].removeprefix("Value error, "), first.get("ctx", {})
    if first["type"].startswith("union_tag_"):
        # The library speaks of tags and discriminators there.
        path = _joined(path, context["discriminator"].strip("'"))
        known = context.get("expected_tags")
        reason = f"Input should be one of {known}" if known else "Field required"
    elif first["type"] in ("too_short", "too_long"):
        # The library speaks of a tuple there.
        reason = _LENGTH.sub(r"There should be \1", reason)
    if first["type"].startswith("unknown_") and isinstance(value, dict):
        given = value.get("action", value.get("type"))
        if isinstance(given, str):
            reason += f" (not {given[:60]!r})"
    text = f"{path}: {reason}" if path else reason
    return text if len(text) <= MAX_REASON_LENGTH else text[:MAX_REASON_LENGTH] + "…"


def _follow(path: str, value: object, pieces: tuple[int | str, ...], kind: str) -> tuple[str, object]:
    """Follow a location into the JSON; labels that unions add to it are skipped."""
    for position, piece in enumerate(pieces):
        if isinstance(piece, int):
            if isinstance(value, list) and 0 <= piece < len(value):
                path, value = f"{path}[{piece}]", value[piece]
        elif isinstance(value, dict) and piece in value:
            path, value = _joined(path, piece), value[piece]
        elif kind == "missing" and position == len(pieces) - 1:
            path = _joined(path, piece)
    return path, value


def _joined(path: str, piece: str) -> str:
    shown = piece[:_SHOWN_NAME]
    return f"{path}.{shown}" if path else shown


def _check_numbers(raw: bytes) -> None:
    """Refuse numbers outside 64 bits; only suspicious text is read a second time, slowly."""
    if not _is_suspicious(raw):
        return
    try:
        json.loads(raw, parse_int=_whole, parse_float=_fraction, parse_constant=_no_number)
    except (json.JSONDecodeError, UnicodeDecodeError):
        # Not JSON at all: the model's own parser says where.
        return


def _is_suspicious(raw: bytes) -> bool:
    """Say whether there may be a number outside 64 bits, or one that JSON does not have.

    It may also be part of a text.

    No regular expression: one that looks for all of this takes a second for 60 MB, in which no other thread runs.
    """
    if b"NaN" in raw or b"Infinity" in raw:
        return True
    shape = raw.translate(_DIGITS_AND_EXPONENTS)
    if any(exponent in shape for exponent in _LARGE_EXPONENTS):
        return True
    start = shape.find(_LONG)
    while start >= 0:
        end = start + _MAX_LONG_DIGITS
        if shape[end : end + 1] == b"0" or int(raw[start:end]) > _MAX_LONG:
            return True
        start = shape.find(_LONG, end)
    return False


def _whole(text: str) -> int:
    if len(text) > _MAX_LONG_DIGITS + 1 or not _MIN_LONG <= int(text) <= _MAX_LONG:
        raise InvalidRequest(f"Invalid body: {text[:40]} is not a 64-bit integer")
    return int(text)


def _fraction(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise InvalidRequest(f"Invalid body: {text[:40]} is not a 64-bit number")
    return number


def _no_number(text: str) -> NoReturn:
    raise InvalidRequest(f"Invalid body: {text} is not a JSON number")
