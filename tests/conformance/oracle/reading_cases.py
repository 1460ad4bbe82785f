"""Random metadata documents that are almost right: as early writers left them, or with one thing broken."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn as Draw

from tests.conformance.oracle.outcomes import Json
from tests.conformance.oracle.table_documents import START_MS, table_documents
from tests.conformance.oracle.view_documents import view_documents

UNKNOWN_FIELD = "x-from-the-future"
ODD_VALUES: tuple[Any, ...] = (None, "text", "7", 7, 7.5, -1, True, [], {}, [None], 2**40, 2**70)


def _as_early_writers_did(draw: Draw, document: Json) -> None:
    """Leave out what came later: lists, ids, refs and the uuid of version 1."""
    later = (
        "table-uuid schemas current-schema-id partition-specs default-spec-id last-partition-id sort-orders "
        "default-sort-order-id refs statistics partition-statistics metadata-log snapshot-log properties snapshots "
        "current-snapshot-id"
    ).split()
    for name in draw(st.lists(st.sampled_from(later), min_size=1, max_size=8, unique=True)):
        document.pop(name, None)
    if draw(st.booleans()):
        for field in document.get("partition-spec", ()):
            field.pop("field-id", None)


def _say_no_snapshot(draw: Draw, document: Json) -> None:
    document.pop("current-snapshot-id", None)
    document["refs"].pop("main", None)
    document["snapshot-log"] = []
    if draw(st.booleans()):
        document["current-snapshot-id"] = draw(st.sampled_from((None, -1)))
    if draw(st.booleans()):
        del document["refs"]


def _leave_out(draw: Draw, document: Json) -> None:
    del document[draw(st.sampled_from(sorted(document)))]


def _make_odd(draw: Draw, document: Json) -> None:
    name = draw(st.sampled_from(sorted(document)))
    document[name] = draw(st.sampled_from(ODD_VALUES))


def _make_odd_below(draw: Draw, document: Json) -> None:
    """Break or leave out one field of an object anywhere in the document."""
    objects = list(_objects_below(document))
    place = draw(st.sampled_from(objects)) if objects else document
    if place:
        name = draw(st.sampled_from(sorted(place)))
        if draw(st.booleans()):
            del place[name]
        else:
            place[name] = draw(st.sampled_from(ODD_VALUES))


def _objects_below(value: Any) -> list[Json]:
    below = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    found = [item for item in below if isinstance(item, dict)]
    return found + [deeper for item in below for deeper in _objects_below(item)]


def _point_nowhere(draw: Draw, document: Json) -> None:
    """Name a schema, spec, order or snapshot that is not there."""
    names = ("current-schema-id", "default-spec-id", "default-sort-order-id", "current-snapshot-id")
    document[draw(st.sampled_from(names))] = draw(st.sampled_from((0, 1, 7, -1)))


def _break_refs(draw: Draw, document: Json) -> None:
    ref: Json = {"snapshot-id": draw(st.sampled_from((11, 12, 4_711))), "type": "branch"}
    ref["type"] = draw(st.sampled_from(("branch", "tag", "BRANCH", "bush")))
    if draw(st.booleans()):
        ref["max-ref-age-ms"] = draw(st.sampled_from((0, 5, None)))
    document["refs"][draw(st.sampled_from(("main", "audit")))] = ref


def _break_times(draw: Draw, document: Json) -> None:
    log = document[draw(st.sampled_from(("snapshot-log", "metadata-log")))]
    far = draw(st.sampled_from((59_000, 61_000)))
    if log:
        draw(st.sampled_from(log))["timestamp-ms"] += far
    else:
        document["last-updated-ms"] = START_MS - far


def _break_numbers(draw: Draw, document: Json) -> None:
    name = draw(
        st.sampled_from(("last-sequence-number", "next-row-id", "format-version", "last-partition-id"))
    )
    document[name] = draw(st.integers(0, 5))


def _add_unknown(draw: Draw, document: Json) -> None:
    place = draw(st.sampled_from([document, *_objects_below(document)]))
    place[UNKNOWN_FIELD] = draw(st.sampled_from((1, "a", {"b": [None]})))


_CHANGES: tuple[Callable[[Draw, Json], None], ...] = (
    _as_early_writers_did,
    _as_early_writers_did,
    _say_no_snapshot,
    _leave_out,
    _make_odd,
    _make_odd_below,
    _make_odd_below,
    _point_nowhere,
    _break_refs,
    _break_times,
    _break_numbers,
    _add_unknown,
)


@st.composite
def almost_tables(draw: Draw) -> Json:
    """Return table metadata with one such change."""
    document = copy.deepcopy(draw(table_documents()))
    draw(st.sampled_from(_CHANGES))(draw, document)
    return document


@st.composite
def almost_views(draw: Draw) -> Json:
    """Return view metadata with one thing broken."""
    document = copy.deepcopy(draw(view_documents()))
    draw(st.sampled_from((_leave_out, _make_odd, _make_odd_below, _add_unknown)))(draw, document)
    return document
