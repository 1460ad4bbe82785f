"""Strategies for partition specs and sort orders that fit a schema."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from tests.strategies.json_values import MAX_INT, Json

BUCKETABLE = tuple(
    "int long date time timestamp timestamptz timestamp_ns timestamptz_ns string uuid binary".split()
)
TRUNCATABLE = ("int", "long", "string", "binary", "decimal")
TIMESTAMPS = ("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")
WITHOUT_IDENTITY = ("variant", "geometry", "geography", "unknown")


def sources(document: Json) -> list[tuple[int, str]]:
    """Return the ids and types of the columns that can be partition sources: primitives in structs only."""
    found: list[tuple[int, str]] = []
    pending = [document]
    while pending:
        for field in pending.pop()["fields"]:
            if isinstance(field["type"], str):
                found.append((field["id"], field["type"]))
            elif field["type"]["type"] == "struct":
                pending.append(field["type"])
    return found


@cache
def transforms(kind: str) -> st.SearchStrategy[str]:
    """Return the transforms that a column of a type can have."""
    family = kind.partition("(")[0].partition("[")[0]
    fitting: list[st.SearchStrategy[str]] = [st.just("void")]
    if family not in WITHOUT_IDENTITY:
        fitting.append(st.just("identity"))
    if family in BUCKETABLE or family in ("decimal", "fixed"):
        fitting.append(st.integers(1, MAX_INT).map(lambda count: f"bucket[{count}]"))
    if family in TRUNCATABLE:
        fitting.append(st.integers(1, MAX_INT).map(lambda width: f"truncate[{width}]"))
    if family in TIMESTAMPS:
        fitting.append(st.just("hour"))
    if family in (*TIMESTAMPS, "date"):
        fitting.append(st.sampled_from(["year", "month", "day"]))
    return st.one_of(fitting)


@st.composite
def spec_documents(
    draw: st.DrawFn, schema: Json, spec_id: int, first_field_id: int = 1000
) -> dict[str, Json]:
    """Return the JSON of a partition spec whose field ids run on from `first_field_id`."""
    columns = sources(schema)
    chosen = draw(st.lists(st.sampled_from(columns), max_size=3)) if columns else []
    fields = []
    for position, (source_id, kind) in enumerate(chosen):
        field = {
            "name": f"part {position}:{source_id}",
            "transform": draw(transforms(kind)),
            "source-id": source_id,
            "field-id": first_field_id + position,
        }
        fields.append(field)
    return {"spec-id": spec_id, "fields": fields}


@st.composite
def order_documents(draw: st.DrawFn, schema: Json, order_id: int) -> dict[str, Json]:
    """Return the JSON of a sort order; one without fields has id 0."""
    # A variant is no primitive type to the reference, which sorts by nothing else.
    columns = [(source_id, kind) for source_id, kind in sources(schema) if kind != "variant"]
    chosen = draw(st.lists(st.sampled_from(columns), max_size=3)) if columns else []
    fields = [
        {
            "transform": draw(transforms(kind)),
            "source-id": source_id,
            "direction": draw(st.sampled_from(["asc", "desc"])),
            "null-order": draw(st.sampled_from(["nulls-first", "nulls-last"])),
        }
        for source_id, kind in chosen
    ]
    return {"order-id": order_id if fields else 0, "fields": fields}
