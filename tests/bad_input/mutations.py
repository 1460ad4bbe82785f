"""Random damage to a JSON document: parts deleted, repeated, swapped, or replaced by extreme values."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

Steps = tuple[str | int, ...]

MUTATIONS = (1, 1, 1, 2, 2, 3)
NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    5,
    7,
    100,
    999,
    1000,
    1001,
    1002,
    1003,
    2**31 - 201,
    2**31 - 1,
    2**31,
    -(2**31),
    -(2**31) - 1,
)
LONGS = (2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**30, 1_700_000_000_000, 253_402_300_800_000)
FRACTIONS = (0.0, -0.0, 1.5, 1e308, -1.0, 3.0)
TEXTS = (
    *(
        "",
        " ",
        "main",
        "audit",
        "v1.0",
        "1",
        "-1",
        "true",
        "null",
        "append",
        "struct",
        "list",
        "identity",
        "void",
    ),
    *(
        "int",
        "variant",
        "timestamp_ns",
        "decimal(39, 2)",
        "fixed[0]",
        "fixed[99999999999]",
        "bucket[0]",
        "truncate[-1]",
    ),
    *(
        "geometry(" + " " * 50,
        "unknown",
        "branch",
        "tag",
        "asc",
        "overwrite",
        "set-properties",
        "assert-create",
    ),
    *(
        "a.b",
        "a/b",
        "..",
        "../../x",
        "/",
        "file:///etc/passwd",
        "s3://bucket/x",
        "file:x",
        "http://127.0.0.1/",
    ),
    *(
        "\x00",
        "a\x1fb",
        "\u202e",
        "\ufffe",
        "é" * 300,
        "x" * 5_000,
        "😀",
        "2024-02-30",
        "9" * 40,
        "1e5",
        "NaN",
    ),
    *(
        "00000000-0000-0000-0000-000000000000",
        "a2V5",
        "!",
        "'; DROP TABLE pointers; --",
        "${jndi:ldap://x}",
        "%00",
    ),
)
EXTREMES: tuple[Any, ...] = (
    *NUMBERS,
    *LONGS,
    *FRACTIONS,
    *TEXTS,
    None,
    True,
    False,
    [],
    {},
    [[]],
    [None],
    {"": None},
    {"a": {"b": 1}},
)


def paths_of(value: Any, above: Steps = ()) -> Iterator[Steps]:
    """Yield the path of every value below."""
    if isinstance(value, dict):
        items: Iterator[tuple[str | int, Any]] = iter(value.items())
    elif isinstance(value, list):
        items = iter(enumerate(value))
    else:
        return
    for key, item in items:
        yield (*above, key)
        yield from paths_of(item, (*above, key))


_KINDS_OF_DAMAGE = (
    *["vary"] * 6,
    "replace",
    "replace",
    "delete",
    "delete",
    "repeat",
    "swap",
    "swap",
    "rename",
    "nest",
)


@st.composite
def mutated(draw: st.DrawFn, documents: Sequence[Any]) -> Any:
    """Return one of the documents, damaged in a few places."""
    document = copy.deepcopy(draw(st.sampled_from(documents)))
    for _ in range(draw(st.sampled_from(MUTATIONS))):
        paths = list(paths_of(document))
        if not paths:
            break
        path = draw(st.sampled_from(paths))
        _damage(draw, document, path, documents)
    return document


def _damage(draw: st.DrawFn, document: Any, path: Steps, documents: Sequence[Any]) -> None:
    *above, last = path
    container = document
    for key in above:
        container = container[key]
    match draw(st.sampled_from(_KINDS_OF_DAMAGE)):
        case "vary":
            container[last] = draw(_alike(container[last]))
        case "replace":
            container[last] = copy.deepcopy(draw(st.sampled_from(EXTREMES)))
        case "delete":
            del container[last]
        case "repeat" if isinstance(container, list):
            container.insert(draw(st.integers(0, len(container))), copy.deepcopy(container[int(last)]))
        case "swap":
            donor = draw(st.sampled_from(documents))
            others = [other for other in paths_of(donor) if type(_at(donor, other)) is type(container[last])]
            if others:
                container[last] = copy.deepcopy(_at(donor, draw(st.sampled_from(others))))
        case "rename" if isinstance(container, dict):
            name = draw(
                st.sampled_from(("self", "schema_", "snapshot_id", "x" * 300, "", "__class__", *container))
            )
            container[name] = container.pop(str(last))
        case "nest":
            container[last] = [container[last]] if draw(st.booleans()) else {"type": container[last]}


def _alike(value: Any) -> st.SearchStrategy[Any]:
    """Return values of the same type, which get past the parser more often."""
    match value:
        case bool():
            return st.just(not value)
        case int():
            return st.sampled_from((value + 1, value - 1, -value, *NUMBERS, *LONGS))
        case str():
            return st.sampled_from((value.upper(), f" {value}", value + "/../..", *TEXTS))
        case list():
            return st.sampled_from(([], [*value, *value], value[::-1], value[:1]))
        case dict():
            return st.sampled_from(({}, {**value, "novel": {"x": [1]}}, {**value, "self": "x"}))
        case _:
            return st.sampled_from(EXTREMES)


def _at(document: Any, path: Steps) -> Any:
    for key in path:
        document = document[key]
    return document


def as_json(value: Any) -> bytes:
    """Return a value as JSON, control characters escaped and numbers of any size."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
