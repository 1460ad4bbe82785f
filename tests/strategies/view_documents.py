"""Strategies for view metadata as JSON, and for update lists of views."""

from __future__ import annotations

import json

from hypothesis import strategies as st
from pydantic import ValidationError

from app.engine.change.updates import Update
from app.engine.model.view_metadata import ViewMetadata, read_view_metadata
from tests.strategies.json_values import Json, edge_integers, texts, unknown_fields
from tests.strategies.table_schemas import schema_documents
from tests.strategies.update_lists import parse_updates, wild_update_documents

START_MS = 1_700_000_000_000
DIALECTS = st.sampled_from(["spark", "trino", "Spark", "duckdb"])


def views() -> st.SearchStrategy[ViewMetadata]:
    """Return views with history, read from their JSON."""
    return view_documents().map(lambda document: read_view_metadata(json.dumps(document).encode()))


@st.composite
def view_documents(draw: st.DrawFn) -> dict[str, Json]:
    """Return the JSON of a view as this build writes it."""
    schemas = [
        draw(schema_documents(2, schema_id, with_unknown=True))
        for schema_id in range(draw(st.integers(1, 2)))
    ]
    version_ids = draw(st.lists(st.integers(1, 20), unique=True, min_size=1, max_size=4).map(sorted))
    versions = [
        draw(version_documents(st.integers(0, len(schemas) - 1))) | {"version-id": version_id}
        for version_id in version_ids
    ]
    current = draw(st.sampled_from(version_ids))
    return {
        "view-uuid": draw(st.uuids().map(str)),
        "format-version": 1,
        "location": draw(st.sampled_from(["s3://bucket/v", "s3://bucket/v/"])),
        "schemas": schemas,
        "current-version-id": current,
        "versions": versions,
        "version-log": [
            {"timestamp-ms": START_MS + version_id, "version-id": version_id}
            for version_id in version_ids
            if version_id <= current
        ],
        "properties": draw(st.dictionaries(texts(), texts(), max_size=2)),
    } | draw(unknown_fields())


@st.composite
def version_documents(draw: st.DrawFn, schema_ids: st.SearchStrategy[int]) -> dict[str, Json]:
    """Return the JSON of a view version without its id."""
    dialects = draw(st.lists(DIALECTS, unique_by=str.lower, min_size=1, max_size=2))
    version = {
        "timestamp-ms": START_MS + draw(st.integers(0, 100)),
        "schema-id": draw(schema_ids),
        "summary": {"engine-name": draw(texts())},
        "default-namespace": draw(st.lists(texts(), max_size=2)),
        "representations": [
            {"type": "sql", "sql": f"select {number}", "dialect": dialect} | draw(unknown_fields())
            for number, dialect in enumerate(dialects)
        ],
    }
    if draw(st.booleans()):
        version["default-catalog"] = draw(texts())
    return version | draw(unknown_fields())


@st.composite
def sensible_view_updates(draw: st.DrawFn, base: ViewMetadata) -> tuple[Update, ...]:
    """Return updates that mostly work: new schemas, versions, properties, a location."""
    version = draw(version_documents(st.sampled_from([-1, *(item.schema_id for item in base.schemas)])))
    chosen = draw(st.sampled_from([-1, *base.versions_by_id]))
    documents: list[Json] = [
        {"action": "add-schema", "schema": draw(schema_documents(2, 5))},
        {"action": "add-view-version", "view-version": version | {"version-id": draw(st.integers(-2, 25))}},
        {"action": "set-current-view-version", "view-version-id": chosen},
        {
            "action": "set-properties",
            "updates": {
                "replace.drop-dialect.allowed": draw(st.sampled_from(["true", "false"])),
                "version.history.num-entries": str(draw(st.integers(1, 4))),
            },
        },
        {"action": "set-location", "location": draw(st.sampled_from(["s3://bucket/v", "s3://bucket/w"]))},
        {"action": "remove-properties", "removals": ["a"]},
    ]
    return parse_updates([document for document in documents if draw(st.booleans())])


@st.composite
def wild_view_updates(draw: st.DrawFn, base: ViewMetadata) -> tuple[Update, ...]:
    """Return updates that parse and otherwise make no sense."""
    updates: list[Update] = []
    for _ in range(draw(st.integers(1, 6))):
        version = draw(version_documents(edge_integers())) | {"version-id": draw(edge_integers())}
        document = draw(
            st.just({"action": "add-view-version", "view-version": version})
            | edge_integers().map(
                lambda item: {"action": "set-current-view-version", "view-version-id": item}
            )
            | wild_update_documents()
        )
        try:
            updates += parse_updates([document])
        except ValidationError:
            continue
    return (*updates, *draw(sensible_view_updates(base)))
