"""Strategies for JSON: texts, numbers, any value, and fields that no document of the spec has."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from hypothesis import strategies as st

Json = Any
MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1

EDGE_INTEGERS = (
    *(-1, 0, 1, 2, 3, 999, 1000, 1001),
    *(MAX_INT - 200, MAX_INT - 1, MAX_INT, MAX_INT + 1, -MAX_INT - 1, -MAX_INT - 2),
    *(MAX_LONG - 1, MAX_LONG, MAX_LONG + 1, -MAX_LONG - 1, -MAX_LONG - 2, 10**30),
)
UNKNOWN_NAMES = (
    *("vendor-note", "x", "", "ключ", "a.b", "schema", "type-name"),
    # Names that mean something in Python: as fields of a document they mean nothing.
    *("self", "cls", "_fields_set", "__class__", "__pydantic_extra__", "model_config", "copy"),
    *(
        "schema_id",
        "spec_id",
        "field_id",
        "source_id",
        "snapshot_id",
        "format_version",
        "view_uuid",
        "schema_",
    ),
)


TELLING_TEXTS = ("", "a", "A b", "ключ", "😀", "\x00", "line\nbreak", '"quoted\\"', "\u2028", "true")
TELLING_VALUES: tuple[Json, ...] = (
    *(0, -1, 10**30, 1.5, -0.0, 1e300, True, False, "", "ü😀", [], {}),
    *([None, 1, [2.5]], {"a": None, "b": [1, {"c": "x"}]}, {"format-version": 9}),
)


@cache
def texts(max_size: int = 4) -> st.SearchStrategy[str]:
    """Return texts that UTF-8 can hold, empty ones too."""
    return st.sampled_from(TELLING_TEXTS) | st.text(
        st.characters(exclude_categories=["Cs"]), max_size=max_size
    )


@cache
def edge_integers() -> st.SearchStrategy[int]:
    """Return whole numbers, most of them small or where a limit is."""
    return st.sampled_from(EDGE_INTEGERS) | st.integers(-5, 12) | st.integers()


@cache
def json_values() -> st.SearchStrategy[Json]:
    """Return any JSON value, nested a little."""
    scalars = (
        st.none()
        | st.booleans()
        | edge_integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | texts()
    )
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3),
        max_leaves=6,
    )


@cache
def unknown_fields() -> st.SearchStrategy[dict[str, Json]]:
    """Return fields that no build knows, mostly none; a null says nothing and is left out."""
    one = st.builds(
        lambda name, value: {name: value}, st.sampled_from(UNKNOWN_NAMES), st.sampled_from(TELLING_VALUES)
    )
    return st.just({}) | one


@st.composite
def mutations(draw: st.DrawFn, document: dict[str, Json]) -> bytes:
    """Return the JSON of a document in which a few parts were dropped, doubled or replaced by anything."""
    damaged = json.loads(json.dumps(document))
    for _ in range(draw(st.integers(1, 3))):
        _damage(draw, damaged)
    return json.dumps(damaged, ensure_ascii=draw(st.booleans()), allow_nan=True).encode(
        "utf-8", "surrogatepass"
    )


def _damage(draw: st.DrawFn, document: dict[str, Json]) -> None:
    places = list(_places(document))
    if not places:
        return
    owner, key = draw(st.sampled_from(places))
    match draw(st.sampled_from(["drop", "replace", "replace", "double", "odd"])):
        case "drop":
            del owner[key]
        case "replace":
            owner[key] = draw(json_values())
        case "double" if isinstance(owner, list):
            owner.append(owner[key])
        case _:
            owner[key] = draw(
                st.sampled_from(
                    [float("nan"), float("inf"), "\ud800", True, 1.0, "1", None, [], {}, -1, 10**25]
                )
            )


def _places(value: Json) -> list[tuple[Any, Any]]:
    """Return every (owner, key) inside a JSON value, outermost first."""
    found: list[tuple[Any, Any]] = []
    pending = [value]
    while pending:
        owner = pending.pop()
        keys = list(owner) if isinstance(owner, dict) else range(len(owner))
        for key in keys:
            found.append((owner, key))
            if isinstance(owner[key], dict | list):
                pending.append(owner[key])
    return found
