"""Random requirements, about half of which hold on a given table or view."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn as Draw

from tests.conformance.oracle.columns import rarely
from tests.conformance.oracle.outcomes import Json
from tests.conformance.oracle.table_documents import REF_NAMES, SNAPSHOT_IDS

NUMBERS = {
    "assert-last-assigned-field-id": ("last-assigned-field-id", "last-column-id"),
    "assert-current-schema-id": ("current-schema-id", "current-schema-id"),
    "assert-last-assigned-partition-id": ("last-assigned-partition-id", "last-partition-id"),
    "assert-default-spec-id": ("default-spec-id", "default-spec-id"),
    "assert-default-sort-order-id": ("default-sort-order-id", "default-sort-order-id"),
}
"""The kinds that compare a number: under which name it is sent, and under which it stands in the table."""


def _uuid(draw: Draw, uuid: str) -> str:
    return str(draw(st.sampled_from((uuid, uuid, uuid.upper(), "0e4d5ad5-9d5c-4a4b-8f3f-6d1a4d3a2c11"))))


def _spelled(draw: Draw, requirement: Json) -> Json:
    """Write the kind in capitals once in a while."""
    return {**requirement, "type": requirement["type"].upper()} if rarely(draw) else requirement


@st.composite
def requirement_lists(draw: Draw, base: Json) -> list[Json]:
    """Return requirements of a table commit."""
    return [_spelled(draw, _one(draw, base)) for _ in range(draw(st.integers(1, 3)))]


def _one(draw: Draw, base: Json) -> Json:
    match draw(st.integers(0, 9)):
        case 0 | 1 | 2 | 3:
            return _about_ref(draw, base)
        case 4:
            return {"type": "assert-table-uuid", "uuid": _uuid(draw, base["table-uuid"])}
        case 5:
            return draw(
                st.sampled_from(
                    ({"type": "assert-create"}, {"type": "assert-view-uuid", "uuid": base["table-uuid"]})
                )
            )
        case _:
            kind = draw(st.sampled_from(sorted(NUMBERS)))
            sent, stored = NUMBERS[kind]
            return {"type": kind, sent: base[stored] + draw(st.sampled_from((0, 0, 0, 1, -1)))}


def _about_ref(draw: Draw, base: Json) -> Json:
    name = draw(st.sampled_from(("main", *REF_NAMES)))
    requirement: dict[str, Any] = {"type": "assert-ref-snapshot-id", "ref": name}
    known = base["refs"].get(name)
    if draw(st.booleans()):
        requirement["snapshot-id"] = known["snapshot-id"] if known else None
    elif draw(st.booleans()):
        requirement["snapshot-id"] = draw(st.sampled_from((None, *SNAPSHOT_IDS)))
    return requirement


@st.composite
def view_requirement_lists(draw: Draw, base: Json) -> list[Json]:
    """Return requirements of a view commit."""
    uuid = base["view-uuid"]
    kinds: list[Json] = [
        {"type": "assert-view-uuid", "uuid": _uuid(draw, uuid)},
        {"type": "assert-view-uuid", "uuid": _uuid(draw, uuid)},
        {"type": "assert-table-uuid", "uuid": uuid},
        {"type": "assert-create"},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
    ]
    return [_spelled(draw, draw(st.sampled_from(kinds))) for _ in range(draw(st.integers(1, 2)))]
