"""Commits that must not land: unknown kinds, contradictions, stale numbers, dangling refs, and requirements that fail."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.bad_input.attacks import CONFLICT, POST, TAKEN, Attack, check_refused
from tests.bad_input.commit_bodies import FIRST, SECOND, THIRD, act, partition_statistics, schema, snapshot, statistics
from tests.bad_input.victim import Victim
from tests.builders.http_catalog import VIEW_VERSION

TABLES, VIEW = "/v1/namespaces/a/tables", "/v1/namespaces/a/views/v"
NEVER = "0e4d5ad5-9d5c-4a4b-8f3f-6d1a4d3a2c11"
STALE = "Validation failed, please retry: Cannot add snapshot with sequence number {} older than last sequence number 2"


def committing(name: str, message: str, *updates: Any, status: int = 400, version: int = 2, requirements: Any = ()) -> Attack:
    """Return a commit to the table with a history, in a format version."""
    body = {"requirements": list(requirements), "updates": list(updates)}
    return Attack(name, POST, f"{TABLES}/v{version}", status, message, CONFLICT if status == 409 else "", body)


def requiring(name: str, message: str, *requirements: Any, status: int = 409) -> Attack:
    """Return a commit that is fine but for its requirements."""
    return committing(name, message, act("set-properties", updates={"a": "b"}), status=status, requirements=requirements)


def new(version: int = 2, sequence: int = 3, **fields: Any) -> dict[str, Any]:
    """Return an update that adds a snapshot on top of the last."""
    changes = {key.replace("_", "-"): value for key, value in fields.items()}
    return act("add-snapshot", snapshot=snapshot(version, THIRD, sequence, "$LOCATION", **{"parent-snapshot-id": SECOND, **changes}))


def without(update: dict[str, Any], key: str) -> dict[str, Any]:
    """Return an update that adds a snapshot without one of its fields."""
    return act("add-snapshot", snapshot={name: item for name, item in update["snapshot"].items() if name != key})


KNOWN_ACTIONS = "Invalid body: updates[0]: unknown or missing action; known are: add-encryption-key, …"
ENVELOPES = [
    committing("unknown update", f"{KNOWN_ACTIONS} (not 'drop-everything')", act("drop-everything")),
    committing("update without a kind", KNOWN_ACTIONS, {"updates": {"a": "b"}}),
    committing("kind is a number", KNOWN_ACTIONS, {"action": 7}),
    committing("kind is a list", KNOWN_ACTIONS, {"action": ["set-properties"]}),
    committing("kind in snake case", f"{KNOWN_ACTIONS} (not 'set_properties')", {"action": "set_properties", "updates": {}}),
    committing("update is a text", KNOWN_ACTIONS, "set-properties"),
    committing("update is null", KNOWN_ACTIONS, None),
    committing("a requirement among the updates", f"{KNOWN_ACTIONS}", {"type": "assert-create"}),
    requiring("unknown requirement", "Invalid body: requirements[0]: unknown or missing type; known are: assert-create, … (not 'assert-weather')", {"type": "assert-weather"}, status=400),
    requiring("requirement without a kind", "Invalid body: requirements[0]: unknown or missing type; …", {}, status=400),
    Attack("no requirements", POST, f"{TABLES}/v2", 400, "Invalid body: requirements: Field required", body={"updates": []}),
    Attack("requirements are null", POST, f"{TABLES}/v2", 400, "Invalid body: requirements: Input should be a valid array", body={"requirements": None, "updates": []}),
    Attack("updates are an object", POST, f"{TABLES}/v2", 400, "Invalid body: updates: Input should be a valid array", body={"requirements": [], "updates": {}}),
    Attack("another table's name", POST, f"{TABLES}/v2", 400, "Invalid body: identifier is a.t, but the path names a.v2", body={"identifier": {"namespace": ["a"], "name": "t"}, "requirements": [], "updates": []}),
    Attack("another namespace", POST, f"{TABLES}/v2", 400, "Invalid body: identifier is a.b.v2, but the path names a.v2", body={"identifier": {"namespace": ["a", "b"], "name": "v2"}, "requirements": [], "updates": []}),
    Attack("name without a namespace", POST, f"{TABLES}/v2", 400, "Invalid body: identifier.namespace: Field required", body={"identifier": {"name": "v2"}, "requirements": [], "updates": []}),
]

REQUIREMENTS = [
    requiring("another uuid", f"Requirement failed: UUID does not match: expected $UUID != {NEVER}", {"type": "assert-table-uuid", "uuid": NEVER}),
    requiring("a uuid that is none", "Requirement failed: UUID does not match: expected $UUID != x", {"type": "assert-table-uuid", "uuid": "x"}),
    requiring("uuid is null", "Invalid body: requirements[0].uuid: Input should be a valid string", {"type": "assert-table-uuid", "uuid": None}, status=400),
    requiring("no uuid", "Invalid body: requirements[0].uuid: Field required", {"type": "assert-table-uuid"}, status=400),
    requiring("main elsewhere", f"Requirement failed: branch main has changed: expected id {FIRST} != {SECOND}", {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": FIRST}),
    requiring("main not there", "Requirement failed: branch main was created concurrently", {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}),
    requiring("tag not there", "Requirement failed: tag v1.0 was created concurrently", {"type": "assert-ref-snapshot-id", "ref": "v1.0"}),
    requiring("missing branch", "Requirement failed: branch or tag nope is missing, expected 7", {"type": "assert-ref-snapshot-id", "ref": "nope", "snapshot-id": 7}),
    requiring("snapshot id is a text", "Invalid body: requirements[0].snapshot-id: Input should be a valid integer", {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": "1002"}, status=400),
    requiring("snapshot id of 2^63", "Invalid body: 9223372036854775808 is not a 64-bit integer", {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 2**63}, status=400),
    requiring("field ids moved on", "Requirement failed: last assigned field id changed: expected id 1 != 8", {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 1}),
    requiring("another schema", "Requirement failed: current schema changed: expected id 1 != 0", {"type": "assert-current-schema-id", "current-schema-id": 1}),
    requiring("partition ids moved on", "Requirement failed: last assigned partition id changed: expected id 999 != 1000", {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 999}),
    requiring("another spec", "Requirement failed: default partition spec changed: expected id 1 != 0", {"type": "assert-default-spec-id", "default-spec-id": 1}),
    requiring("another order", "Requirement failed: default sort order changed: expected id 0 != 1", {"type": "assert-default-sort-order-id", "default-sort-order-id": 0}),
    requiring("schema id of 2^31", "Invalid body: requirements[0].current-schema-id: Input should be less than or equal to 2147483647", {"type": "assert-current-schema-id", "current-schema-id": 2**31}, status=400),
    requiring("it exists", "Requirement failed: table already exists", {"type": "assert-create"}),
    requiring("new and known", "Invalid create requirements: assert-create cannot stand beside assert-table-uuid", {"type": "assert-create"}, {"type": "assert-table-uuid", "uuid": NEVER}, status=400),
    requiring("a view's requirement", "Cannot validate a table: assert-view-uuid is for views", {"type": "assert-view-uuid", "uuid": NEVER}, status=400),
    requiring("the second one fails", "Requirement failed: current schema changed: expected id 7 != 0", {"type": "assert-table-uuid", "uuid": "$UUID"}, {"type": "assert-current-schema-id", "current-schema-id": 7}),
    Attack("create where a view is", POST, f"{TABLES}/v", 409, "View with same name already exists: a.v", TAKEN, {"requirements": [{"type": "assert-create"}], "updates": []}),
    Attack("create from nothing", POST, f"{TABLES}/x", 400, "The table has no uuid: the updates need an assign-uuid", body={"requirements": [{"type": "assert-create"}], "updates": []}),
    Attack("create without columns", POST, f"{TABLES}/x", 400, "…schema…", body={"requirements": [{"type": "assert-create"}], "updates": [act("assign-uuid", uuid=NEVER), act("set-location", location="$LOCATION")]}),
    Attack("create a snapshot first", POST, f"{TABLES}/x", 400, "Attempting to add a snapshot before a schema is added", body={"requirements": [{"type": "assert-create"}], "updates": [new()]}),
    Attack("create in no namespace", POST, "/v1/namespaces/nope/tables/x", 400, "The table has no uuid…", body={"requirements": [{"type": "assert-create"}], "updates": []}),
]

SNAPSHOTS = [
    committing("snapshot is null", "Invalid body: updates[0].snapshot: …", act("add-snapshot", snapshot=None)),
    committing("empty snapshot", "Invalid body: updates[0].snapshot.snapshot-id: Field required", act("add-snapshot", snapshot={})),
    committing("id is a text", "Invalid body: updates[0].snapshot.snapshot-id: Input should be a valid integer", new(snapshot_id="1003")),
    committing("id is a fraction", "Invalid body: updates[0].snapshot.snapshot-id: Input should be a valid integer", new(snapshot_id=1003.0)),
    committing("id of none", "Cannot add snapshot with id -1: it stands for no snapshot", new(snapshot_id=-1)),
    committing("id that is there", f"Snapshot already exists for id: {SECOND}", new(snapshot_id=SECOND)),
    committing("one id twice", f"Snapshot already exists for id: {THIRD}", new(), new(sequence=4)),
    committing("no manifest list", "Invalid body: updates[0].snapshot: a snapshot needs a manifest-list", without(new(), "manifest-list")),
    committing("only manifests in v2", f"Cannot add snapshot {THIRD} to a v2 table: it has no manifest-list", without(new(manifests=["s3://x/m.avro"]), "manifest-list")),
    committing("manifest list is a list", "Invalid body: updates[0].snapshot.manifest-list: Input should be a valid string", new(manifest_list=["x"])),
    committing("summary of numbers", "Invalid body: updates[0].snapshot.summary.added-records: Input should be a valid string", new(summary={"operation": "append", "added-records": 3})),
    committing("summary with null", "Invalid body: updates[0].snapshot.summary.x: Input should be a valid string", new(summary={"operation": "append", "x": None})),
    committing("summary is a text", "Invalid body: updates[0].snapshot.summary: Input should be an object", new(summary="append")),
    committing("unknown operation", f"Cannot add snapshot {THIRD}: operation 'truncate' is none of append, delete, overwrite, replace", new(summary={"operation": "truncate"})),
    committing("operation in capitals", f"Cannot add snapshot {THIRD}: operation 'APPEND' is none of …", new(summary={"operation": "APPEND"})),
    committing("time below zero", "Invalid body: updates[0].snapshot.timestamp-ms: Input should be greater than or equal to 0", new(timestamp_ms=-1)),
    committing("time in microseconds", f"Cannot add snapshot {THIRD}: timestamp-ms 1700000000000000 is more than a day ahead of …", new(timestamp_ms=1_700_000_000_000_000)),
    committing("the end of time", f"Cannot add snapshot {THIRD}: timestamp-ms 9223372036854775807 is more than a day ahead of …", new(timestamp_ms=2**63 - 1)),
    committing("time in words", "Invalid body: updates[0].snapshot.timestamp-ms: Input should be a valid integer", new(timestamp_ms="now")),
    committing("stale", STALE.format(2), new(sequence=2), status=409),
    committing("very stale", STALE.format(0), new(sequence=0), status=409),
    committing("no sequence number", STALE.format(0), without(new(), "sequence-number"), status=409),
    committing("sequence number below zero", "Invalid body: updates[0].snapshot.sequence-number: Input should be greater than or equal to 0", new(sequence_number=-1)),
    committing("sequence number in v1", "Cannot add snapshot with sequence number 3 to a v1 table: it must be 0", new(sequence_number=3), version=1),
    committing("no row ids in v3", "Cannot add a snapshot: first-row-id is null", without(new(3), "first-row-id"), version=3),
    committing("stale row ids", "Validation failed, please retry: Cannot add a snapshot, first-row-id is behind table next-row-id: 3 < 6", new(3, first_row_id=3), version=3, status=409),
    committing("row ids below zero", "Invalid body: updates[0].snapshot.first-row-id: Input should be greater than or equal to 0", new(3, first_row_id=-1), version=3),
    committing("rows without a count", "Invalid body: updates[0].snapshot: a snapshot with first-row-id needs added-rows", without(new(3), "added-rows"), version=3),
    committing("more rows than there are numbers", "Cannot add a snapshot: 9223372036854775807 added rows exceed what row ids can number", new(3, added_rows=2**63 - 1), version=3),
    committing("snapshot with a tower in it", "Invalid body: updates[0].snapshot.novel: nested more than 40 levels deep", new(novel=[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]])),
]

REFS = [
    committing("ref to nowhere", "Cannot set new to unknown snapshot: 7", act("set-snapshot-ref", ref_name="new", type="branch", snapshot_id=7)),
    committing("main as a tag", "Cannot set main to a tag: it must be a branch", act("set-snapshot-ref", ref_name="main", type="tag", snapshot_id=FIRST)),
    committing("ref of a third kind", "Invalid body: updates[0].type: Input should be 'branch' or 'tag'", act("set-snapshot-ref", ref_name="new", type="twig", snapshot_id=FIRST)),
    committing("ref without a name", "Invalid body: updates[0].ref-name: String should have at least 1 character", act("set-snapshot-ref", ref_name="", type="branch", snapshot_id=FIRST)),
    committing("keep none", "Invalid min-snapshots-to-keep for new: 0, it must be greater than 0", act("set-snapshot-ref", ref_name="new", type="branch", snapshot_id=FIRST, min_snapshots_to_keep=0)),
    committing("age below zero", "Invalid max-ref-age-ms for new: -1, it must be greater than 0", act("set-snapshot-ref", ref_name="new", type="tag", snapshot_id=FIRST, max_ref_age_ms=-1)),
    committing("tag that keeps snapshots", "Tags do not support setting min-snapshots-to-keep (new)", act("set-snapshot-ref", ref_name="new", type="tag", snapshot_id=FIRST, min_snapshots_to_keep=1)),
    committing("keep 2^31", "Invalid body: updates[0].min-snapshots-to-keep: Input should be less than or equal to 2147483647", act("set-snapshot-ref", ref_name="new", type="branch", snapshot_id=FIRST, min_snapshots_to_keep=2**31)),
    committing("dangling main", f"Cannot remove snapshot {SECOND}: branch main refers to it and is not removed by the same commit", act("remove-snapshots", snapshot_ids=[SECOND]), status=409),
    committing("dangling tag", f"Cannot remove snapshot {FIRST}: … refers to it and is not removed by the same commit", act("remove-snapshot-ref", ref_name="audit"), act("remove-snapshots", snapshot_ids=[FIRST]), status=409),
    committing("ref made and its snapshot removed", f"Cannot remove snapshot {THIRD}: branch new refers to it and is not removed by the same commit", new(), act("set-snapshot-ref", ref_name="new", type="branch", snapshot_id=THIRD), act("remove-snapshots", snapshot_ids=[THIRD]), status=409),
    committing("removed, then named", f"Cannot set new to unknown snapshot: {FIRST}", act("remove-snapshot-ref", ref_name="audit"), act("remove-snapshot-ref", ref_name="v1.0"), act("remove-snapshots", snapshot_ids=[FIRST]), act("set-snapshot-ref", ref_name="new", type="tag", snapshot_id=FIRST)),
    committing("ids are a number", "Invalid body: updates[0].snapshot-ids: Input should be a valid array", act("remove-snapshots", snapshot_ids=FIRST)),
    committing("an id of 2^64", "Invalid body: 18446744073709551616 is not a 64-bit integer", act("remove-snapshots", snapshot_ids=[2**64])),
]

COLUMN: dict[str, Any] = {"id": 12, "name": "new", "type": "int", "required": False}
SHAPES = [
    committing("unknown schema", "Cannot set current schema to unknown schema: 7", act("set-current-schema", schema_id=7)),
    committing("last schema of none", "Cannot set last added schema: no schema has been added", act("set-current-schema", schema_id=-1)),
    committing("current before added", "Cannot set last added schema: no schema has been added", act("set-current-schema", schema_id=-1), act("add-schema", schema=schema(COLUMN))),
    committing("current schema removed", "Cannot remove the current schema", act("remove-schemas", schema_ids=[0])),
    committing("new current schema removed", "Cannot remove the current schema", act("set-current-schema", schema_id=1), act("remove-schemas", schema_ids=[1])),
    committing("schema is null", "Invalid body: updates[0].schema: …", act("add-schema", schema=None)),
    committing("one field id twice", "Invalid schema: field id 1 is used more than once (new)", act("add-schema", schema=schema({**COLUMN, "id": 1}))),
    committing("one name twice", "Invalid schema: multiple fields for name place.x", act("add-schema", schema=schema({**COLUMN, "name": "place.x"}))),
    committing("reserved field id", "Cannot add schema: field id 2147483646 is reserved", act("add-schema", schema=schema({**COLUMN, "id": 2**31 - 2}))),
    committing("a type of v3", "Invalid schema for v2:\n- Invalid type for new: variant is not supported until v3", act("add-schema", schema=schema({**COLUMN, "type": "variant"}))),
    committing("types of v3 in v1", "Invalid schema for v1:\n- Invalid type for new: timestamp_ns is not supported until v3", act("add-schema", schema=schema({**COLUMN, "type": "timestamp_ns"})), version=1),
    committing("a default of v3", "Invalid schema for v2:\n- Invalid initial default for new: non-null default (7) is not supported until v3", act("add-schema", schema=schema({**COLUMN, "initial-default": 7}))),
    committing("a default on no calendar", "Invalid write default for new: '2024-02-30' is not a single value of its type", act("add-schema", schema=schema({**COLUMN, "type": "date", "write-default": "2024-02-30"})), version=3),
    committing("partition's column dropped", "Cannot find source column for partition field: id_bucket (source-id 1)", act("add-schema", schema={"type": "struct", "fields": [COLUMN]}), act("set-current-schema", schema_id=-1)),
    committing("partition's column retyped", "…id_bucket…", act("add-schema", schema={"type": "struct", "fields": [{"id": 1, "name": "id", "type": "double", "required": True}, COLUMN]}), act("set-current-schema", schema_id=-1)),
    committing("last spec of none", "Cannot set last added spec: no spec has been added", act("set-default-spec", spec_id=-1)),
    committing("unknown spec", "Cannot set default partition spec to unknown spec: 7", act("set-default-spec", spec_id=7)),
    committing("default spec removed", "Cannot remove the default partition spec", act("remove-partition-specs", spec_ids=[0])),
    committing("spec of a missing column", "Cannot find source column for partition field: p (source-id 77)", act("add-spec", spec={"fields": [{"name": "p", "transform": "identity", "source-id": 77}]})),
    committing("spec of a column to come", "Cannot find source column for partition field: p (source-id 12)", act("add-schema", schema=schema(COLUMN)), act("add-spec", spec={"fields": [{"name": "p", "transform": "identity", "source-id": 12}]})),
    committing("spec of a column that does not fit", "Invalid source type string for transform hour of partition field: p", act("add-spec", spec={"fields": [{"name": "p", "transform": "hour", "source-id": 2}]})),
    committing("partition ids of manifests", "Cannot add partition field p: field id 102 is below 1000", act("add-spec", spec={"fields": [{"name": "p", "transform": "identity", "source-id": 2, "field-id": 102}]})),
    committing("partition ids below zero", "Cannot add partition field p: field id -5 is below 1000", act("add-spec", spec={"fields": [{"name": "p", "transform": "identity", "source-id": 2, "field-id": -5}]})),
    committing("reserved partition id", "Cannot add partition field p: field id 2147483647 is reserved", act("add-spec", spec={"fields": [{"name": "p", "transform": "identity", "source-id": 2, "field-id": 2**31 - 1}]})),
    committing("one partition id twice", "Cannot use partition field id more than once: 1005", act("add-spec", spec={"fields": [{"name": name, "transform": f"bucket[{count}]", "source-id": 2, "field-id": 1005} for name, count in (("p", 2), ("q", 3))]})),
    committing("partition ids out of order in v1", "Cannot add partition spec: v1 tables need field ids in sequence from 1000, found 1007 for p", act("add-spec", spec={"fields": [{"name": "p", "transform": "identity", "source-id": 2, "field-id": 1007}]}), version=1),
    committing("last order of none", "Cannot set last added sort order: no sort order has been added", act("set-default-sort-order", sort_order_id=-1)),
    committing("unknown order", "Cannot set default sort order to unknown sort order: 7", act("set-default-sort-order", sort_order_id=7)),
    committing("order by a missing column", "Cannot find source column for sort field with source-id 77", act("add-sort-order", sort_order={"order-id": 1, "fields": [{"transform": "identity", "source-id": 77, "direction": "asc", "null-order": "nulls-last"}]})),
    committing("order by nothing of a missing column", "Cannot find source column for sort field with source-id 77", act("add-sort-order", sort_order={"order-id": 1, "fields": [{"transform": "void", "source-id": 77, "direction": "asc", "null-order": "nulls-last"}]})),
]

OTHERS = [
    committing("downgrade", "Cannot downgrade v2 table to v1", act("upgrade-format-version", format_version=1)),
    committing("version 4", "Cannot upgrade table to unsupported format version: v4 (supported: v3)", act("upgrade-format-version", format_version=4)),
    committing("version of 2^40", "Invalid body: updates[0].format-version: Input should be less than or equal to 2147483647", act("upgrade-format-version", format_version=2**40)),
    committing("version in words", "Invalid body: updates[0].format-version: Input should be a valid integer", act("upgrade-format-version", format_version="3")),
    committing("another uuid", f"Cannot reassign uuid: the table has $UUID, the update says {NEVER}", act("assign-uuid", uuid=NEVER)),
    committing("a uuid that is none", "Invalid body: updates[0].uuid: not a UUID: 'nonsense'", act("assign-uuid", uuid="nonsense")),
    committing("a uuid in braces", "Invalid body: updates[0].uuid: not a UUID: …", act("assign-uuid", uuid="{" + NEVER + "}")),
    committing("a uuid with nul", "Invalid body: updates[0].uuid: not a UUID: …", act("assign-uuid", uuid=NEVER[:-1] + "\0")),
    committing("uuid is null", "Invalid body: updates[0].uuid: …", act("assign-uuid", uuid=None)),
    committing("location is null", "Invalid body: updates[0].location: Input should be a valid string", act("set-location", location=None)),
    committing("empty location", "Invalid body: updates[0].location: String should have at least 1 character", act("set-location", location="")),
    committing("properties of numbers", "Invalid body: updates[0].updates.a: Input should be a valid string", act("set-properties", updates={"a": 1})),
    committing("properties with null", "Invalid body: updates[0].updates.a: Input should be a valid string", act("set-properties", updates={"a": None})),
    committing("properties that clients choke on", "Table property commit.retry.num-retries must be a whole number, found 'x'", act("set-properties", updates={"commit.retry.num-retries": "x"})),
    committing("good, then bad", "Table property gc.enabled must be true or false, found '1'", act("set-properties", updates={"a": "b"}), act("set-properties", updates={"gc.enabled": "1"})),
    committing("removals are a text", "Invalid body: updates[0].removals: Input should be a valid array", act("remove-properties", removals="owner")),
    committing("statistics are null", "Invalid body: updates[0].statistics: …", act("set-statistics", statistics=None)),
    committing("statistics without a path", "Invalid body: updates[0].statistics.statistics-path: Field required", act("set-statistics", statistics={key: item for key, item in statistics("$LOCATION").items() if key != "statistics-path"})),
    committing("statistics of fields by name", "Invalid body: updates[0].statistics.blob-metadata[0].fields[0]: Input should be a valid integer", act("set-statistics", statistics={**statistics("$LOCATION"), "blob-metadata": [{"type": "x", "snapshot-id": 1, "sequence-number": 1, "fields": ["id"]}]})),
    committing("statistics with a numeric key", "Invalid body: updates[0].statistics.key-metadata: Input should be a valid string", act("set-statistics", statistics={**statistics("$LOCATION"), "key-metadata": 7})),
    committing("partition statistics with a size in words", "Invalid body: updates[0].partition-statistics.file-size-in-bytes: Input should be a valid integer", act("set-partition-statistics", partition_statistics={**partition_statistics("$LOCATION"), "file-size-in-bytes": "43"})),
    committing("key that is not base64", "Invalid body: updates[0].encryption-key.encrypted-key-metadata: not base64", act("add-encryption-key", encryption_key={"key-id": "k", "encrypted-key-metadata": "!"})),
    committing("key with half a byte", "Invalid body: updates[0].encryption-key.encrypted-key-metadata: not base64", act("add-encryption-key", encryption_key={"key-id": "k", "encrypted-key-metadata": "a"})),
    committing("a view's update", "Cannot apply set-current-view-version to a table: it is for views", act("set-current-view-version", view_version_id=1)),
    committing("a view's version", "Cannot apply add-view-version to a table: it is for views", act("add-view-version", view_version=VIEW_VERSION)),
]


def replacing(name: str, message: str, *updates: Any, status: int = 400, kind: str = "", requirements: Any = ()) -> Attack:
    """Return a commit to the view."""
    return Attack(name, POST, VIEW, status, message, kind or (CONFLICT if status == 409 else ""), {"requirements": list(requirements), "updates": list(updates)})


TRINO = {**VIEW_VERSION, "representations": [{"type": "sql", "dialect": "trino", "sql": "SELECT 1"}]}
VIEWS = [
    replacing("a table's update", "Cannot apply add-snapshot to a view: it is for tables", new()),
    replacing("a table's ref", "Cannot apply remove-snapshot-ref to a view: it is for tables", act("remove-snapshot-ref", ref_name="main")),
    replacing("a table's requirement", "Cannot validate a view: assert-table-uuid is for tables", requirements=[{"type": "assert-table-uuid", "uuid": "$VIEW_UUID"}]),
    replacing("another view", f"Requirement failed: view UUID does not match: expected $VIEW_UUID != {NEVER}", status=409, requirements=[{"type": "assert-view-uuid", "uuid": NEVER}]),
    replacing("a new table's requirement", "Cannot validate a view: assert-create is for tables", requirements=[{"type": "assert-create"}]),
    replacing("another uuid", f"Cannot reassign uuid: the view has $VIEW_UUID, the update says {NEVER}", act("assign-uuid", uuid=NEVER)),
    replacing("version 2", "Cannot upgrade view to unsupported format version: v2 (supported: v1)", act("upgrade-format-version", format_version=2)),
    replacing("version 0", "Cannot downgrade v1 view to v0", act("upgrade-format-version", format_version=0)),
    replacing("unknown version", "Cannot set current version to unknown version: 7", act("set-current-view-version", view_version_id=7)),
    replacing("last version of none", "Cannot set last version id: no current version id has been set", act("set-current-view-version", view_version_id=-1)),
    replacing("unknown schema", "Cannot add version with unknown schema: 7", act("add-view-version", view_version={**VIEW_VERSION, "schema-id": 7})),
    replacing("last schema of none", "Cannot set last added schema: no schema has been added", act("add-view-version", view_version={**VIEW_VERSION, "schema-id": -1})),
    replacing("two queries of a dialect", "Invalid view version: Cannot add multiple queries for dialect trino", act("add-view-version", view_version={**TRINO, "representations": TRINO["representations"] * 2}), kind="IllegalArgumentException"),
    replacing("a dialect lost", "Cannot replace view due to loss of view dialects …", act("add-view-version", view_version=TRINO), act("set-current-view-version", view_version_id=-1)),
    replacing("a schema with one id twice", "Invalid schema: field id 1 is used more than once (new)", act("add-schema", schema=schema({**COLUMN, "id": 1}))),
    replacing("no history kept", "Table property version.history.num-entries must be at least 1, found -3", act("set-properties", updates={"version.history.num-entries": "-3"})),
    Attack("no updates", POST, VIEW, 400, "Invalid body: updates: Field required", body={"requirements": []}),
    Attack("another view's name", POST, VIEW, 400, "Invalid body: identifier is a.t, but the path names a.v", body={"identifier": {"namespace": ["a"], "name": "t"}, "updates": []}),
]


@pytest.mark.parametrize("attack", [*ENVELOPES, *REQUIREMENTS, *SNAPSHOTS, *REFS, *SHAPES, *OTHERS, *VIEWS], ids=str)
def test_attack_is_refused_and_changes_nothing(victim: Victim, attack: Attack) -> None:
    check_refused(attack, victim)


@pytest.mark.parametrize("attack", [*ENVELOPES[:8], *SNAPSHOTS, *REFS, *SHAPES[:6]], ids=str)
def test_one_bad_change_undoes_a_whole_transaction(victim: Victim, attack: Attack) -> None:
    version = attack.target[-1]
    good = {"identifier": {"namespace": ["a"], "name": "t"}, "requirements": [], "updates": [act("set-properties", updates={"a": "b"})]}
    bad = {"identifier": {"namespace": ["a"], "name": f"v{version}"}, **attack.body}
    message = attack.message.replace("Invalid body: updates", "Invalid body: table-changes[1].updates")

    check_refused(Attack("", POST, "/v1/transactions/commit", attack.status, message, attack.kind, {"table-changes": [good, bad]}), victim)


def test_snapshot_dated_by_a_clock_a_little_ahead_is_taken(victim: Victim) -> None:
    soon_ms = time.time_ns() // 1_000_000 + 3_600_000
    name = victim.client.post(TABLES, json={"name": "ahead", "schema": schema()}).json()["metadata"]["location"]

    made = snapshot(2, FIRST, 1, name, **{"timestamp-ms": soon_ms})
    answer = victim.client.post(f"{TABLES}/ahead", json={"requirements": [], "updates": [act("add-snapshot", snapshot=made)]})

    assert answer.status_code == 200
    assert answer.json()["metadata"]["snapshots"][0]["timestamp-ms"] == soon_ms
