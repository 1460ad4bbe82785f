"""Whatever manifests a table has, every question about it is answered, and upkeep leaves every file as it was."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from app.engine.model.data_types.json_values import to_json_value
from app.engine.model.document import MAX_LONG
from app.engine.model.files.manifests import (
    DataFile,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from app.engine.model.ids import FieldId, Location, SnapshotId, SpecId
from app.engine.model.partition_spec import PartitionField, PartitionSpec
from app.engine.model.schema import Schema
from app.fileio.memory import SHARED
from app.formats.manifests.columns import ManifestColumns
from app.formats.manifests.lists import assign_numbers, read_manifest_list, write_manifest_list
from app.formats.manifests.writer import write_manifest
from tests.builders.http_catalog import http_catalog, make_namespace
from tests.strategies.manifest_entries import entries, partition_kinds, tables

WAREHOUSE = "memory://any-manifests"
SNAPSHOT, SEQUENCE_NUMBER, FIRST_ROW_ID = SnapshotId(2**40), 2**62, 2**41
START_MS = 1_700_000_000_000
_numbers = itertools.count(1)
Written = tuple[ManifestContent, PartitionSpec, Sequence[ManifestEntry]]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("any-manifests")
    # Each answer is also compared with openapi.yaml.
    with http_catalog(folder, default_warehouse_location=WAREHOUSE) as client:
        make_namespace(client, "a")
        yield client


@st.composite
def manifest_groups(draw: st.DrawFn, version: int) -> tuple[Schema, PartitionSpec, list[Written]]:
    """Return what the manifests of one snapshot are written of."""
    schema, spec = draw(tables(version))
    specs = [spec, spec, draw(earlier_specs(spec))]
    contents = [ManifestContent.DATA] if version == 1 else list(ManifestContent)
    found: list[Written] = []
    for _ in range(draw(st.integers(1, 3))):
        content, used = draw(st.sampled_from(contents)), draw(st.sampled_from(specs))
        some = draw(st.lists(entries(schema, used, content, version), min_size=1, max_size=5))
        found.append((content, used, some))
    return schema, spec, found


@st.composite
def earlier_specs(draw: st.DrawFn, spec: PartitionSpec) -> PartitionSpec:
    """Return a spec that the table had before: some of its fields, in another order, some replaced."""
    kept = draw(st.permutations(spec.fields))[: draw(st.integers(0, 4))]
    fields = [
        PartitionField(
            name=f"was {each.name}",
            transform="identity",
            source_id=each.source_id,
            field_id=FieldId(each.field_id + 10),
        )
        if draw(st.booleans())
        else each
        for each in kept
    ]
    return PartitionSpec(spec_id=SpecId(4), fields=tuple(fields))


UNPARTITIONED: dict[str, Any] = {"spec-id": 9, "fields": []}
WIDER = {
    "int": "long",
    "float": "double",
    "decimal(1, 0)": "decimal(2, 0)",
    "decimal(9, 2)": "decimal(10, 2)",
    "decimal(20, 5)": "decimal(38, 5)",
}
WIDER_SINCE_V3 = {"date": "timestamp", **WIDER}
NEVER_PARTITIONS: list[Any] = [
    {"type": "list", "element-id": 21, "element-required": False, "element": "string"},
    {"type": "map", "key-id": 22, "key": "int", "value-id": 23, "value-required": False, "value": "double"},
    {"type": "struct", "fields": [{"id": 24, "name": "id0", "required": False, "type": "timestamptz"}]},
]
NEVER_BEFORE_V3: list[Any] = ["variant", "geometry", "geography", "unknown"]


@st.composite
def later_schemas(draw: st.DrawFn, schema: Schema, version: int) -> list[Any]:
    """Return the schemas that a table has later: columns came, went, or became wider; old ones may be forgotten."""
    was = schema.to_object()["fields"]
    others = draw(st.sets(st.sampled_from(range(3 if version < 3 else 7)), max_size=3))
    wider = WIDER if version < 3 else WIDER_SINCE_V3
    now = [
        {
            "id": 5 + at,
            "name": f"o.{at}",
            "required": False,
            "type": [*NEVER_PARTITIONS, *NEVER_BEFORE_V3][at],
        }
        for at in sorted(others)
    ]
    for field in was:
        what = draw(st.sampled_from(["stay", "stay", "widen", "drop"]))
        if what != "drop":
            kind = wider.get(field["type"], field["type"]) if what == "widen" else field["type"]
            now.append({**field, "type": kind})
    if now == was:
        return [was]
    return [now] if draw(st.booleans()) else [was, now]


def registered(
    api: httpx.Client,
    version: int,
    schemas: Sequence[Any],
    schema: Schema,
    spec: PartitionSpec,
    groups: Sequence[Written],
) -> tuple[str, Location]:
    """Put a table of these manifests into the catalog; return its path and where its list is."""
    name = f"t{next(_numbers)}"
    root = f"{WAREHOUSE}/{name}"
    manifests = []
    for number, (content, used, some) in enumerate(groups):
        written = write_manifest(
            some, schema=schema, spec=used, format_version=version, content=content, snapshot_id=SNAPSHOT
        )
        place = Location(f"{root}/metadata/m{number}.avro")
        SHARED.write_new(place, written.content)
        manifests.append(written.at(place))
    numbered, next_row_id = assign_numbers(
        manifests,
        sequence_number=SEQUENCE_NUMBER if version > 1 else 0,
        first_row_id=FIRST_ROW_ID if version > 2 else None,
    )
    listed = write_manifest_list(
        numbered,
        format_version=version,
        snapshot_id=SNAPSHOT,
        parent_snapshot_id=None,
        sequence_number=SEQUENCE_NUMBER,
        first_row_id=FIRST_ROW_ID,
    ).content
    place = Location(f"{root}/metadata/snap.avro")
    SHARED.write_new(place, listed)
    snapshot: dict[str, Any] = {
        "snapshot-id": SNAPSHOT,
        "timestamp-ms": START_MS,
        "manifest-list": place,
        "summary": {"operation": "append"},
        "schema-id": len(schemas) - 1,
    }
    older = [used.to_object() for _, used, _ in groups if used != spec][:1]
    there = {field["id"] for field in schemas[-1]}
    is_whole = all(field.source_id in there or field.transform == "void" for field in spec.fields)
    default = spec.to_object() if is_whole else UNPARTITIONED
    document: dict[str, Any] = {
        "format-version": version,
        "table-uuid": f"{next(_numbers):08x}-0000-4000-8000-000000000000",
        "location": root,
        "last-updated-ms": START_MS,
        "last-column-id": 24,
        "current-schema-id": len(schemas) - 1,
        "schemas": [
            {"type": "struct", "schema-id": schema_id, "fields": fields}
            for schema_id, fields in enumerate(schemas)
        ],
        "default-spec-id": default["spec-id"],
        "partition-specs": [*older, spec.to_object(), UNPARTITIONED],
        "last-partition-id": 1020,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {},
        "current-snapshot-id": SNAPSHOT,
        "refs": {"main": {"snapshot-id": SNAPSHOT, "type": "branch"}},
        "snapshots": [snapshot],
        "snapshot-log": [{"timestamp-ms": START_MS, "snapshot-id": SNAPSHOT}],
    }
    if version == 1:
        document |= {"schema": document["schemas"][-1], "partition-spec": default["fields"]}
    else:
        snapshot["sequence-number"] = document["last-sequence-number"] = SEQUENCE_NUMBER
    if version > 2:
        assert next_row_id is not None
        snapshot |= {"first-row-id": FIRST_ROW_ID, "added-rows": next_row_id - FIRST_ROW_ID}
        document["next-row-id"] = next_row_id
    metadata = f"{root}/metadata/00000-x.metadata.json"
    SHARED.write_new(Location(metadata), json.dumps(document).encode())
    answer = api.post("/v1/namespaces/a/register", json={"name": name, "metadata-location": metadata})
    assert answer.status_code == 200, answer.text
    return f"/v1/namespaces/a/tables/{name}", place


def live_in(location: str) -> Counter[str]:
    """Return the live files of a snapshot with all that is known of them; deleted ones go with a rewrite."""
    found: Counter[str] = Counter()
    manifests: Sequence[ManifestFile] = read_manifest_list(
        SHARED.read(Location(location)), Location(location)
    ).values
    for manifest in manifests:
        for entry in ManifestColumns(manifest, SHARED.read(manifest.manifest_path)):
            if entry.is_live:
                numbers = (entry.snapshot_id, entry.data_sequence_number, entry.file_sequence_number)
                found[f"{numbers} {entry.file!r}"] += 1
    return found


def list_of(table: dict[str, Any]) -> str:
    metadata = table["metadata"]
    (current,) = (
        each for each in metadata["snapshots"] if each["snapshot-id"] == metadata["current-snapshot-id"]
    )
    return str(current["manifest-list"])


@pytest.mark.parametrize("version", [1, 2, 3])
@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_question_is_answered(api: httpx.Client, version: int, data: st.DataObject) -> None:
    schema, spec, groups = data.draw(manifest_groups(version))
    schemas = data.draw(later_schemas(schema, version))
    path, _ = registered(api, version, schemas, schema, spec, groups)
    filters: list[Any] = [True]
    kinds = partition_kinds(schema, spec)
    names = [column["name"] for column in schemas[-1]]
    for name in names:
        filters += [{"type": kind, "term": name} for kind in ("is-null", "not-null")]
    for field, kind in zip(spec.fields, kinds, strict=True):
        for some in (some for _, used, some in groups if used == spec):
            value = some[0].file.partition[spec.fields.index(field)]
            if value is not None and field.transform == "identity" and kind.kind not in ("float", "double"):
                source = schema.columns[field.source_id]
                if source.field.name in names:
                    value = to_json_value(kind, value)
                    filters.append({"type": "eq", "term": source.field.name, "value": value})
    filter_json = data.draw(st.sampled_from(filters))

    answers = [
        api.get(f"{path}/{what}") for what in ("health", "profile", "maintenance", "snapshots", "history")
    ]
    answers.append(api.get(f"{path}/snapshots/{SNAPSHOT}"))
    answers.append(api.get(f"{path}/snapshots/{SNAPSHOT}/files", params={"filter": json.dumps(filter_json)}))
    answers.append(api.post(f"{path}/plan", json={"filter": filter_json, "stats-fields": names}))
    answers.append(api.post(f"{path}/plan", json={"filter": filter_json}))
    operation = {"kind": "overwrite", "isolation": "serializable", "filter": filter_json}
    answers.append(api.post(f"{path}/conflicts", json={"operation": operation}))
    for what, body in (
        ("rewrite-manifests", {"dry-run": True, "all": True}),
        ("remove-dangling-deletes", {"dry-run": True}),
        ("partition-statistics", {"dry-run": True}),
        ("expire", {"dry-run": True}),
    ):
        answers.append(api.post(f"{path}/{what}", json=body))

    for answer in answers:
        if answer.status_code != 200:
            event(f"{answer.request.url.path.rpartition('/')[2]}: {answer.json()['error']['message'][:40]}")
        assert answer.status_code in (200, 400, 406), (str(answer.request.url), answer.text)
        json.loads(answer.content, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    health, profile, *_, listed, _, planned, _, _, _, _, _ = answers
    check_what_is_counted(groups, health, profile, listed if filter_json is True else None, planned)


def check_what_is_counted(
    groups: Sequence[Written],
    health: httpx.Response,
    profile: httpx.Response,
    listed: httpx.Response | None,
    planned: httpx.Response,
) -> None:
    """Compare what is counted and listed with what was written."""
    live = [entry.file for _, _, some in groups for entry in some if entry.is_live]
    data = [file for file in live if file.content is FileContent.DATA]
    rows = sum(file.record_count for file in data)
    if health.status_code == 200:
        files = health.json()["files"]
        assert (files["data-files"], files["delete-files"]) == (len(data), len(live) - len(data))
        size = min(sum(file.file_size_in_bytes for file in data), MAX_LONG)  # No sum is larger.
        assert (files["rows"], files["data-bytes"]) == (rows, size)
    if profile.status_code == 200:
        found = profile.json()
        assert (found["data-files"], found["rows"], found["delete-files"]) == (
            len(data),
            rows,
            len(live) - len(data),
        )
    if listed is None:
        return
    if listed.status_code == 200:
        assert Counter(map(_as_listed, live)) == Counter(
            (file["file-path"], file["record-count"], file["file-size-in-bytes"])
            for file in listed.json()["files"]
        )
    if planned.status_code == 200:
        tasks = planned.json()["file-scan-tasks"]
        assert Counter(map(_as_listed, data)) == Counter(
            (file["file-path"], file["record-count"], file["file-size-in-bytes"])
            for file in (task["data-file"] for task in tasks)
        )


def _as_listed(file: DataFile) -> tuple[str, int, int]:
    return file.file_path, file.record_count, file.file_size_in_bytes


@pytest.mark.parametrize("version", [1, 2, 3])
@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_rewritten_manifests_have_the_same_files(
    api: httpx.Client, version: int, data: st.DataObject
) -> None:
    schema, spec, groups = data.draw(manifest_groups(version))
    path, place = registered(api, version, data.draw(later_schemas(schema, version)), schema, spec, groups)
    before = live_in(place)

    answer = api.post(f"{path}/rewrite-manifests", json={"all": True})

    event(answer.json()["error"]["message"][:40] if answer.status_code != 200 else "rewritten")
    assert answer.status_code in (200, 400, 406), answer.text
    after = api.get(path).json()
    assert live_in(list_of(after)) == before
    if answer.status_code == 200:
        assert answer.json()["entries-processed"] <= sum(before.values())
