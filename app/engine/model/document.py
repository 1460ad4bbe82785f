"""The base class of the spec's JSON documents: frozen, kebab-case, unknown fields kept."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    StrictBool,
    ValidationError,
)
from pydantic_core import CoreSchema, core_schema

from app.error_frames import MANY_FAULTS, let_go_of_frames
from app.errors import InvalidMetadata

MAX_LONG = 2**63 - 1
MAX_INT = 2**31 - 1

# With a NewType, use the constant: `Annotated[SnapshotId, LONG]`. The aliases below are for plain integers.
LONG = Field(strict=True, ge=-(2**63), le=MAX_LONG)
INT = Field(strict=True, ge=-(2**31), le=MAX_INT)
Long = Annotated[int, LONG]
"""A 64-bit integer; strings, floats and booleans are refused, as in the reference's parsers."""
Int = Annotated[int, INT]
"""A 32-bit integer."""
Bool = StrictBool
FIRST_ERROR = Field(fail_fast=True)
"""For lists and maps of any length: only the first error is reported, and collecting the others takes seconds."""
MAX_JSON_LEVELS = 40
"""How deeply unknown fields may be nested: clients' parsers give up at 200 levels of a whole answer."""

UUID_FORM = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def _check_uuid(value: str) -> str:
    if not UUID_FORM.fullmatch(value):
        raise ValueError(f"not a UUID: {value[:100]!r}")
    return value


UUID = AfterValidator(_check_uuid)
"""The only spelling of a UUID that every client reads."""


def check_json_value(value: Any) -> Any:
    """Return a value if JSON can hold it and clients can read it.

    Raises:
        ValueError: a number is infinite or NaN, a string has half of a surrogate pair, or it is nested too deeply.
    """
    _check_level(value, MAX_JSON_LEVELS)
    return value


def _check_level(value: Any, levels_left: int) -> None:
    match value:
        case float() if not math.isfinite(value):
            raise ValueError("not a number that JSON has")
        case str():
            value.encode()
        case list() | dict() if not levels_left:
            raise ValueError(f"nested more than {MAX_JSON_LEVELS} levels deep")
        case list():
            for item in value:
                _check_level(item, levels_left - 1)
        case dict():
            for name, item in value.items():
                name.encode()
                _check_level(item, levels_left - 1)


T = TypeVar("T")

JsonValue = Annotated[Any, AfterValidator(check_json_value)]
"""Any JSON value: fields that this build does not know, and defaults of columns."""


def find_count(text: str | None) -> int | None:
    """Return the count that a text is, a number from 0 to 2^63 - 1; None for anything else."""
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > len(str(MAX_LONG)):
        return None
    return int(text) if int(text) <= MAX_LONG else None


def pause(value: T) -> T:
    """Return the value.

    The parser is no Python and lets no other thread run, however long a document is, unless it calls a Python
    function: where it does, the interpreter looks whether another thread waits.
    """
    return value


Text = Annotated[str, AfterValidator(pause)]
"""A text of which a document may have very many."""


def kebab(name: str) -> str:
    """Return the spec's spelling of a Python field name."""
    return name.replace("_", "-")


class Document(BaseModel):
    """A JSON object of the spec. Fields that this build does not know survive a rewrite."""

    model_config = ConfigDict(
        frozen=True,
        extra="allow",
        alias_generator=kebab,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        protected_namespaces=(),
    )
    __pydantic_extra__: dict[str, JsonValue]

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Let other threads run after each document in a document."""
        return core_schema.no_info_after_validator_function(pause, handler(source))

    @classmethod
    def from_json(cls, content: bytes | str) -> Self:
        """Parse a document.

        Raises:
            InvalidMetadata: the text is not JSON or breaks the document's rules; the message names the part.
        """
        try:
            return cls.model_validate_json(content, by_alias=True, by_name=False)
        except ValidationError as error:
            let_go_of_frames(error)
            fault = describe_invalid(error)
        except RecursionError:
            fault = "Invalid JSON: it is nested too deeply"
        # Not from the error: it has a line for each fault, which a log would print, and may have very many.
        raise InvalidMetadata(fault)

    @classmethod
    def from_object(cls, value: object) -> Self:
        """Return the document of a parsed JSON value; raises `pydantic.ValidationError`."""
        return cls.model_validate(value, by_alias=True, by_name=False)

    def replace(self, **changes: object) -> Self:
        """Return a copy with some fields changed; the values must already be valid."""
        copy = self.model_copy(update=changes)
        # model_copy copies cached properties too, which may belong to the old values.
        for name in copy.__dict__.keys() - type(self).model_fields.keys():
            del copy.__dict__[name]
        return copy

    def with_unknown_fields(self, unknown: Mapping[str, Any]) -> Self:
        """Return a copy whose unknown fields are these, whatever their names."""
        copy = self.model_copy()
        # Not by keyword: an unknown field may have the name of an argument, or of one of our fields in Python.
        object.__setattr__(copy, "__pydantic_extra__", dict(unknown))
        return copy

    def to_json(self) -> bytes:
        """Return compact UTF-8 JSON, fields in the spec's order, unknown ones last.

        Nulls are left out, also of unknown fields: for clients, a null and a missing field differ.
        """
        return self.model_dump_json(exclude_none=True).encode()

    def to_object(self) -> dict[str, Any]:
        """Return the JSON value of `to_json`."""
        return self.model_dump(mode="json", exclude_none=True)

    @property
    def unknown_fields(self) -> Mapping[str, Any]:
        return self.__pydantic_extra__ or {}


def describe_invalid(error: ValidationError) -> str:
    """Return one sentence that names the first invalid part and what is wrong with it.

    Of very many faults, such as unknown fields with values that JSON has not, it only says how many there are.
    """
    if error.error_count() > MANY_FAULTS:
        return f"{error.error_count()} parts of it are invalid"
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    path = ""
    for piece in first["loc"]:
        path += f"[{piece}]" if isinstance(piece, int) else f".{piece}" if path else str(piece)
    message = first["msg"].removeprefix("Value error, ")
    return f"{path}: {message}" if path else message
