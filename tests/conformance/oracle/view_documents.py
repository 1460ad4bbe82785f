"""Random view metadata and lists of view updates, as JSON."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn as Draw

from tests.conformance.oracle.columns import all_ids, evolved, rarely, schemas
from tests.conformance.oracle.outcomes import Json
from tests.conformance.oracle.table_documents import START_MS, UUID
from tests.conformance.oracle.update_lists import LAST_ADDED, act

VIEW_LOCATION = "s3://bucket/warehouse/db/view"
QUERIES = ("SELECT 1", "SELECT id FROM t", "SELECT * FROM größe")
PROPERTIES: tuple[dict[str, str], ...] = (
    {"owner": "me"},
    {"version.history.num-entries": "1"},
    {"version.history.num-entries": "2"},
    {"version.history.num-entries": "0"},
    {"version.history.num-entries": "all"},
    {"replace.drop-dialect.allowed": "true"},
    {"replace.drop-dialect.allowed": "false"},
    {},
)


@st.composite
def versions(draw: Draw, version_id: int, schema_id: int, timestamp_ms: int, *, sloppy: bool = True) -> Json:
    """Return a version of a view; few enough different ones that some are equal."""
    dialects = draw(
        st.sampled_from((("spark",), ("spark",), ("spark",), ("Spark",), ("trino", "spark"), ("trino",)))
    )
    if sloppy and rarely(draw, 20):
        dialects = (*dialects, "SPARK", "spark")
    version: Json = {
        "version-id": version_id,
        "timestamp-ms": timestamp_ms,
        "schema-id": schema_id,
        "summary": draw(st.sampled_from(({}, {}, {"engine-name": "spark"}))),
        "default-namespace": draw(st.sampled_from((["db"], ["db"], ["a", "b"], []))),
        "representations": [
            {"type": "sql", "sql": draw(st.sampled_from(QUERIES)), "dialect": dialect} for dialect in dialects
        ],
    }
    if rarely(draw, 4):
        version["default-catalog"] = "prod"
    return version


@st.composite
def view_documents(draw: Draw) -> Json:
    """Return valid view metadata with up to four versions."""
    known = [draw(schemas(sloppy=False))]
    if draw(st.booleans()):
        changed = draw(evolved(known[0], max(all_ids(known[0])), 2, sloppy=False))
        if {**changed, "schema-id": 0} != known[0]:
            known.append({**changed, "schema-id": 1})
    count = draw(st.integers(1, 4))
    first = draw(st.integers(1, 3))
    history = [
        draw(
            versions(
                first + number,
                draw(st.sampled_from(known))["schema-id"],
                START_MS + 1_000 * number,
                sloppy=False,
            )
        )
        for number in range(count)
    ]
    log = [{"timestamp-ms": item["timestamp-ms"], "version-id": item["version-id"]} for item in history]
    if rarely(draw, 4):
        back = draw(st.sampled_from(history))["version-id"]
        if back != log[-1]["version-id"]:
            log.append({"timestamp-ms": START_MS + 9_000, "version-id": back})
    return {
        "view-uuid": UUID,
        "format-version": 1,
        "location": VIEW_LOCATION,
        "schemas": known,
        "current-version-id": log[-1]["version-id"],
        "versions": history,
        "version-log": log,
        "properties": draw(st.sampled_from(({}, {}, *PROPERTIES[:3], PROPERTIES[5]))),
    }


@st.composite
def view_update_lists(draw: Draw, base: Json) -> list[Json]:
    """Return updates for this view: mostly a new query, as CREATE OR REPLACE VIEW sends it."""
    updates: list[Json] = []
    version_ids = [item["version-id"] for item in base["versions"]]
    for number in range(draw(st.integers(1, 4))):
        updates += _move(draw, base, version_ids, START_MS + 20_000 + 1_000 * number)
    return updates


def _move(draw: Draw, base: Json, version_ids: list[int], time_ms: int) -> list[Json]:
    schema_ids = [item["schema-id"] for item in base["schemas"]]
    match draw(st.integers(0, 9)):
        case 0 | 1 | 2:
            schema = draw(evolved(draw(st.sampled_from(base["schemas"])), 30, 2))
            return [
                act("add-schema", schema=schema),
                act(
                    "add-view-version",
                    view_version=draw(versions(_id(draw, version_ids), LAST_ADDED, time_ms)),
                ),
                act("set-current-view-version", view_version_id=LAST_ADDED),
            ]
        case 3 | 4:
            schema_id = draw(st.sampled_from((*schema_ids, *schema_ids, LAST_ADDED, 7)))
            version = draw(versions(_id(draw, version_ids), schema_id, time_ms))
            if rarely(draw, 3):
                version = {
                    **draw(st.sampled_from(base["versions"])),
                    "version-id": 40,
                    "timestamp-ms": time_ms,
                }
            return [
                act("add-view-version", view_version=version),
                act("set-current-view-version", view_version_id=LAST_ADDED),
            ]
        case 5:
            wanted = draw(st.sampled_from((*version_ids, *version_ids, LAST_ADDED, 99)))
            return [act("set-current-view-version", view_version_id=wanted)]
        case 6:
            return [act("set-properties", updates=draw(st.sampled_from(PROPERTIES)))]
        case 7:
            names = st.lists(st.sampled_from(("owner", "absent", "version.history.num-entries")), max_size=2)
            return [act("remove-properties", removals=draw(names))]
        case 8:
            return [act("set-location", location=draw(st.sampled_from((VIEW_LOCATION, "s3://b/x/", "/y"))))]
        case _:
            uuids = (UUID, UUID.upper(), "0e4d5ad5-9d5c-4a4b-8f3f-6d1a4d3a2c11")
            return [
                draw(
                    st.sampled_from(
                        (
                            act("assign-uuid", uuid=draw(st.sampled_from(uuids))),
                            act("upgrade-format-version", format_version=draw(st.integers(0, 2))),
                            act("remove-snapshot-ref", ref_name="main"),
                            act("add-schema", schema=draw(schemas())),
                        )
                    )
                )
            ]


def _id(draw: Draw, taken: list[int]) -> int:
    """Return the id that a client would choose, or any."""
    version_id = int(draw(st.integers(1, 9))) if rarely(draw, 10) else max(taken) + 1
    taken.append(version_id)
    return version_id
