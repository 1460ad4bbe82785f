"""Tables and views that must not come to be: columns, partitions, orders, properties and queries that make no sense."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bad_input.attacks import POST, TAKEN, Attack, check_refused
from tests.bad_input.victim import Victim
from tests.builders.http_catalog import VIEW_VERSION

TABLES, VIEWS = "/v1/namespaces/a/tables", "/v1/namespaces/a/views"
ID: dict[str, Any] = {"id": 1, "name": "id", "type": "long", "required": True}


def column(kind: Any, field_id: int = 2, name: str = "c", **fields: Any) -> dict[str, Any]:
    """Return an optional column."""
    return {"id": field_id, "name": name, "type": kind, "required": False, **fields}


def making(name: str, message: str, *columns: Any, version: str = "", **fields: Any) -> Attack:
    """Return an attempt to create a table of an id and these columns."""
    body: dict[str, Any] = {"name": "x", "schema": {"type": "struct", "fields": [ID, *columns]}, **fields}
    if version:
        body["properties"] = {"format-version": version}
    return Attack(name, POST, TABLES, 400, message, body=body)


def making_from(name: str, message: str, schema: Any) -> Attack:
    """Return an attempt to create a table of a schema."""
    return Attack(name, POST, TABLES, 400, message, body={"name": "x", "schema": schema})


def deep(levels: int) -> Any:
    """Return a list of lists of lists."""
    kind: Any = "int"
    for level in range(levels):
        kind = {"type": "list", "element-id": 10 + level, "element": kind, "element-required": False}
    return kind


def too_new(kind: str, shown: str | None = None) -> Attack:
    """Return an attempt to give a v2 table a type of v3."""
    message = f"Invalid schema for v2:\n- Invalid type for c: {shown or kind} is not supported until v3"
    return making(f"{kind} in v2", message, column(kind))


LIST = {"type": "list", "element-id": 3, "element": "int", "element-required": False}
STRUCT = {"type": "struct", "fields": [{"id": 3, "name": "x", "type": "int", "required": False}]}
NO_TYPE = "Invalid body: schema.fields[1].type: Cannot parse type string to primitive: …"

TYPES = [
    *(too_new(kind) for kind in ("timestamp_ns", "timestamptz_ns", "variant", "unknown", "geometry", "geography")),
    too_new("geometry(srid:3857)"),
    making("no such type", NO_TYPE, column("lonk")),
    making("empty type", NO_TYPE, column("")),
    making("sql's type", NO_TYPE, column("varchar(10)")),
    making("geometry of spaces", NO_TYPE, column("geometry(" + " " * 100_000)),
    making("geography of spaces and commas", NO_TYPE, column("geography(" + " ,a" * 50_000)),
    making("decimal too wide", "Invalid body: …decimal needs a precision of 1 to 38 and a scale up to it", column("decimal(39, 2)")),
    making("decimal all scale", "Invalid body: …decimal needs a precision of 1 to 38 and a scale up to it", column("decimal(2, 3)")),
    making("decimal of words", NO_TYPE, column("decimal(a, b)")),
    making("decimal in arabic digits", NO_TYPE, column("decimal(٩, ٢)")),
    making("fixed without end", "Invalid body: …the length is too large", column("fixed[9999999999]")),
    making("fixed below zero", NO_TYPE, column("fixed[-1]")),
    making("type is a number", "Invalid body: schema.fields[1].type: Cannot parse type: expected a string or an object", column(7)),
    making("type is null", "Invalid body: schema.fields[1].type: Cannot parse type: expected a string or an object", column(None)),
    making("type is a list", "Invalid body: schema.fields[1].type: Cannot parse type: expected a string or an object", column(["int"])),
    making("nested type of no kind", "Invalid body: schema.fields[1].type: Cannot parse type: …", column({"type": "set"})),
    making("list without an element", "Invalid body: schema.fields[1].type.element: Field required", column({"type": "list", "element-id": 3, "element-required": True})),
    making("map without values", "Invalid body: schema.fields[1].type.…: Field required", column({"type": "map", "key-id": 3, "key": "string", "value-id": 4})),
    making("struct of no fields' list", "Invalid body: schema.fields[1].type.fields: Input should be a valid array", column({"type": "struct", "fields": {}})),
    making("50 levels of lists", "Invalid schema: types are nested more than 40 levels deep", column(deep(50))),
    making("190 levels of lists", "Invalid schema: types are nested more than 40 levels deep", column(deep(190))),
    making("400 levels of lists", "Invalid body: …recursion limit…", column(deep(400))),
    making("an unknown field of 100 levels", "Invalid body: schema.fields[1].novel: nested more than 40 levels deep", column("int", novel=deep(100))),
]

COLUMNS = [
    making_from("no schema type", "Invalid body: schema.type: Field required", {"fields": []}),
    making_from("schema that is a list", "Invalid body: schema.type: Input should be 'struct'", {"type": "list", "fields": []}),
    making_from("schema that is an array", "Invalid body: schema: …", []),
    making_from("schema without fields", "Invalid body: schema.fields: Field required", {"type": "struct"}),
    making_from("fields are an object", "Invalid body: schema.fields: Input should be a valid array", {"type": "struct", "fields": {}}),
    making_from("field is a text", "Invalid body: schema.fields[0]: …", {"type": "struct", "fields": ["id"]}),
    making_from("no field id", "Invalid body: schema.fields[0].id: Field required", {"type": "struct", "fields": [{"name": "a", "type": "int", "required": True}]}),
    making("field id is a text", "Invalid body: schema.fields[1].id: Input should be a valid integer", column("int", "2")),  # type: ignore[arg-type]  # that is the attack
    making("field id is a fraction", "Invalid body: schema.fields[1].id: Input should be a valid integer", column("int", 2.0)),  # type: ignore[arg-type]  # that is the attack
    making("field id is true", "Invalid body: schema.fields[1].id: Input should be a valid integer", column("int", True)),
    making("field id below zero", "Invalid body: schema.fields[1].id: Input should be greater than or equal to 0", column("int", -1)),
    making("field id of 2^31", "Invalid body: schema.fields[1].id: Input should be less than or equal to 2147483647", column("int", 2**31)),
    making("required in words", "Invalid body: schema.fields[1].required: Input should be a valid boolean", column("int", required="yes")),
    making("empty column name", "Invalid body: schema.fields[1].name: String should have at least 1 character", column("int", name="")),
    making("name is null", "Invalid body: schema.fields[1].name: Input should be a valid string", column("int", name=None)),  # type: ignore[arg-type]  # that is the attack
    making("doc is a number", "Invalid body: schema.fields[1].doc: Input should be a valid string", column("int", doc=7)),
    making("one id twice", "Invalid schema: field id 1 is used more than once (c)", column("int", 1)),
    making("one id twice, below", "Invalid schema: field id 2 is used more than once (c.element)", column({**LIST, "element-id": 2})),
    making("one name twice", "Invalid schema: multiple fields for name id", column("int", name="id")),
    making("a dot that makes a name twice", "Invalid schema: multiple fields for name c.x", column(STRUCT), column("int", 9, "c.x")),
    making("required and unknown", "Cannot create required field with unknown type: c", column("unknown", required=True), version="3"),
    making_from("identifier of nothing", "Cannot add fieldId 7 as an identifier field: field does not exist", {"type": "struct", "fields": [ID], "identifier-field-ids": [7]}),
    making_from("optional identifier", "Cannot add field c as an identifier field: not a required field", {"type": "struct", "fields": [column("int")], "identifier-field-ids": [2]}),
    making_from("identifier that is a float", "Cannot add field c as an identifier field: must not be float or double field", {"type": "struct", "fields": [column("float", required=True)], "identifier-field-ids": [2]}),
    making_from("identifier that is a struct", "Cannot add field c as an identifier field: not a primitive type field", {"type": "struct", "fields": [column(STRUCT, required=True)], "identifier-field-ids": [2]}),
    making_from("identifier in a list", "Cannot add field c.element as an identifier field: must not be nested in c, a list or map", {"type": "struct", "fields": [column({**LIST, "element-required": True}, required=True)], "identifier-field-ids": [3]}),
]

DEFAULTS = [
    making("default in v2", "Invalid schema for v2:\n- Invalid initial default for c: non-null default (7) is not supported until v3", column("int", **{"initial-default": 7})),
    *(
        making(f"default {default!r} of a {kind}", f"Invalid initial default for c: {str(default)!r} is not a single value of its type", column(kind, **{"initial-default": default}), version="3")
        for kind, default in (
            ("int", 2**31),
            ("int", 1.0),
            ("int", True),
            ("long", "1"),
            ("float", 1),
            ("double", "1.5"),
            ("boolean", "true"),
            ("decimal(9, 2)", 1.5),
            ("decimal(9, 2)", "1.5"),
            ("decimal(3, 2)", "100.00"),
            ("date", "2023-02-29"),
            ("date", "yesterday"),
            ("date", 19_000),
            ("time", "25:00:00"),
            ("timestamp", "2024-01-01T00:00:00Z"),
            ("timestamp", "2024-01-01 00:00:00"),
            ("timestamptz", "2024-01-01T00:00:00"),
            ("timestamptz", "2024-01-01T00:00:00+02:00"),
            ("timestamp_ns", "1500-01-01T00:00:00"),
            ("uuid", "f79c3e09"),
            ("fixed[4]", "0102"),
            ("binary", "0x01"),
            ("string", 7),
        )
    ),
    making("write default of a variant", "Invalid write default for c: '1' is not a single value of its type", column("variant", **{"write-default": 1}), version="3"),
    making("default of a list", "Invalid write default for c: a nested type can have none", column(LIST, **{"write-default": [1]}), version="3"),
    making("default of a struct", "Invalid initial default for c: a nested type can have none", column(STRUCT, **{"initial-default": {}}), version="3"),
]


def partitioned(name: str, message: str, *fields: Any, **more: Any) -> Attack:
    """Return an attempt to partition a table of an id, a text, a list and a double."""
    columns = [column("string", 2, "note"), column(LIST, 4, "tags"), column("double", 5, "x")]
    return making(name, message, *columns, **{"partition-spec": {"fields": list(fields)}, **more})


def part(transform: Any, source: Any = 1, name: Any = "p", **fields: Any) -> dict[str, Any]:
    """Return a partition field."""
    return {"name": name, "transform": transform, "source-id": source, **fields}


PARTITIONS = [
    partitioned("unknown transform", "Unknown transform: 'zorder'", part("zorder")),
    partitioned("bucket of none", "Invalid transform 'bucket[0]': the parameter must be from 1 to 2147483647", part("bucket[0]")),
    partitioned("bucket below zero", "Unknown transform: 'bucket[-1]'", part("bucket[-1]")),
    partitioned("bucket of 2^31", "Invalid transform 'bucket[2147483648]': …", part("bucket[2147483648]")),
    partitioned("bucket without a number", "Unknown transform: 'bucket'", part("bucket")),
    partitioned("bucket in arabic digits", "Unknown transform: 'bucket[٣]'", part("bucket[٣]")),
    partitioned("transform is a number", "Invalid body: partition-spec.fields[0].transform: Input should be a valid string", part(4)),
    partitioned("transform is an object", "Invalid body: partition-spec.fields[0].transform: Input should be a valid string", part({"bucket": 4})),
    partitioned("no such source", "Cannot find source column for partition field: p (source-id 77)", part("identity", 77)),
    partitioned("source is a name", "Invalid body: partition-spec.fields[0].source-id: Input should be a valid integer", part("identity", "id")),
    partitioned("no source", "Invalid body: partition-spec.fields[0].source-id: Field required", {"name": "p", "transform": "identity"}),
    partitioned("two sources", "Invalid body: partition-spec.fields[0]: transforms of several source columns are not supported", {"name": "p", "transform": "bucket[4]", "source-ids": [1, 2]}),
    partitioned("day of a text", "Invalid source type string for transform day of partition field: p", part("day", 2)),
    partitioned("bucket of a double", "Invalid source type double for transform bucket[4] of partition field: p", part("bucket[4]", 5)),
    partitioned("a list as source", "Cannot …tags…", part("identity", 4)),
    partitioned("an element as source", "Cannot …tags.element…", part("identity", 3)),
    partitioned("one name twice", "Cannot use partition name more than once: p", part("bucket[4]"), part("bucket[8]")),
    partitioned("a column's name", "Cannot create partition from name that exists in schema: note", part("bucket[4]", 1, "note")),
    partitioned("another column's name", "Cannot create identity partition sourced from different field in schema: note", part("identity", 1, "note")),
    partitioned("no name", "Invalid body: partition-spec.fields[0].name: String should have at least 1 character", part("identity", name="")),
    making("spec is a list", "Invalid body: partition-spec: …", **{"partition-spec": []}),
    making("order without direction", "Invalid body: write-order.fields[0].direction: Field required", **{"write-order": {"order-id": 1, "fields": [{"transform": "identity", "source-id": 1, "null-order": "nulls-first"}]}}),
    making("order upwards", "Invalid body: write-order.fields[0].direction: Input should be 'asc' or 'desc'", **{"write-order": {"order-id": 1, "fields": [{"transform": "identity", "source-id": 1, "direction": "up", "null-order": "nulls-first"}]}}),
    making("order of nulls", "Invalid body: write-order.fields[0].null-order: Input should be 'nulls-first' or 'nulls-last'", **{"write-order": {"order-id": 1, "fields": [{"transform": "identity", "source-id": 1, "direction": "asc", "null-order": None}]}}),
    making("order by nothing", "Cannot find source column for sort field… (source-id 9)", **{"write-order": {"order-id": 1, "fields": [{"transform": "identity", "source-id": 9, "direction": "asc", "null-order": "nulls-last"}]}}),
    making("order by an unknown transform", "Unknown transform: 'shuffle'", **{"write-order": {"order-id": 1, "fields": [{"transform": "shuffle", "source-id": 1, "direction": "asc", "null-order": "nulls-last"}]}}),
]

PROPERTIES = [
    making(f"{key} = {value[:20]!r}", message, properties={key: value})
    for key, value, message in (
        ("format-version", "4", "Unsupported format version: v4 (supported: v3)"),
        ("format-version", "0", "Unsupported format version: v0 (supported: v3)"),
        ("format-version", "-1", "Unsupported format version: v-1 (supported: v3)"),
        ("format-version", "two", "Table property format-version must be a whole number, found 'two'"),
        ("format-version", "2.0", "Table property format-version must be a whole number, found '2.0'"),
        ("format-version", "٢", "Table property format-version must be a whole number, found '٢'"),
        ("format-version", "9" * 5_000, "Table property format-version must be a whole number, found '999…'"),
        ("commit.retry.num-retries", "-1", "Table property commit.retry.num-retries must be at least 0, found -1"),
        ("commit.retry.num-retries", " 1_0", "Table property commit.retry.num-retries must be a whole number, found ' 1_0'"),
        ("write.metadata.previous-versions-max", "many", "Table property write.metadata.previous-versions-max must be a whole number, found 'many'"),
        ("write.metadata.compression-codec", "zip", "Table property write.metadata.compression-codec must be none or gzip, found 'zip'"),
        ("gc.enabled", "maybe", "Table property gc.enabled must be true or false, found 'maybe'"),
        ("write.metadata.delete-after-commit.enabled", "", "Table property write.metadata.delete-after-commit.enabled must be true or false, found ''"),
        ("write.metadata.metrics.column.nope", "full", "Invalid metrics config, could not find column nope from table prop write.metadata.metrics.column.nope in schema"),
        ("encryption.key-id", "k", "Invalid properties for v2: encryption.key-id needs format version 3"),
    )
]


def viewing(name: str, message: str, kind: str = "", status: int = 400, **version: Any) -> Attack:
    """Return an attempt to create a view."""
    body = {"name": "x", "schema": {"type": "struct", "fields": [ID]}, "properties": {}, "view-version": {**VIEW_VERSION, **version}}
    return Attack(name, POST, VIEWS, status, message, kind, body)


QUERY = {"type": "sql", "sql": "SELECT 1", "dialect": "spark"}
VIEW_BODY: dict[str, Any] = {"name": "x", "schema": {"type": "struct", "fields": [ID]}, "view-version": VIEW_VERSION, "properties": {}}
NEW_VIEWS = [
    viewing("no queries", "Invalid view version: it has no representations", representations=[]),
    viewing("two queries of a dialect", "Invalid view version: Cannot add multiple queries for dialect spark", "IllegalArgumentException", representations=[QUERY, {**QUERY, "dialect": "SPARK"}]),
    viewing("no sql", "Invalid view version: a sql representation needs sql and dialect", representations=[{"type": "sql", "dialect": "spark"}]),
    viewing("no dialect", "Invalid view version: a sql representation needs sql and dialect", representations=[{"type": "sql", "sql": "SELECT 1"}]),
    viewing("sql is a number", "Invalid body: view-version.representations[0].sql: Input should be a valid string", representations=[{**QUERY, "sql": 1}]),
    viewing("representation without a type", "Invalid body: view-version.representations[0].type: Field required", representations=[{"sql": "SELECT 1", "dialect": "spark"}]),
    viewing("version id is a text", "Invalid body: view-version.version-id: Input should be a valid integer", **{"version-id": "1"}),
    viewing("version id of 2^31", "Invalid body: view-version.version-id: Input should be less than or equal to 2147483647", **{"version-id": 2**31}),
    viewing("time below zero", "Invalid body: view-version.timestamp-ms: Input should be greater than or equal to 0", **{"timestamp-ms": -1}),
    viewing("summary of numbers", "Invalid body: view-version.summary.x: Input should be a valid string", summary={"x": 1}),
    viewing("default namespace is a text", "Invalid body: view-version.default-namespace: Input should be a valid array", **{"default-namespace": "a"}),
    Attack("no history kept", POST, VIEWS, 400, "Table property version.history.num-entries must be at least 1, found 0", body={**VIEW_BODY, "properties": {"version.history.num-entries": "0"}}),
    Attack("a view's duplicate columns", POST, VIEWS, 400, "Invalid schema: field id 1 is used more than once (id2)", body={**VIEW_BODY, "schema": {"type": "struct", "fields": [ID, {**ID, "name": "id2"}]}}),
    Attack("no version", POST, VIEWS, 400, "Invalid body: view-version: Field required", body={key: value for key, value in VIEW_BODY.items() if key != "view-version"}),
    Attack("view onto a view", POST, VIEWS, 409, "View already exists: a.v", TAKEN, {**VIEW_BODY, "name": "v"}),
    Attack("view onto a table", POST, VIEWS, 409, "Table with same name already exists: a.t", TAKEN, {**VIEW_BODY, "name": "t"}),
    Attack("view in no namespace", POST, "/v1/namespaces/nope/views", 404, "Namespace does not exist: nope", "NoSuchNamespaceException", VIEW_BODY),
    Attack("table in no namespace", POST, "/v1/namespaces/non-existing/tables", 404, "Namespace does not exist: non-existing", "NoSuchNamespaceException", {"name": "x", "schema": VIEW_BODY["schema"]}),
    Attack("staged in no namespace", POST, "/v1/namespaces/nope/tables", 404, "Namespace does not exist: nope", "NoSuchNamespaceException", {"name": "x", "schema": VIEW_BODY["schema"], "stage-create": True}),
]


@pytest.mark.parametrize("attack", [*TYPES, *COLUMNS, *DEFAULTS, *PARTITIONS, *PROPERTIES, *NEW_VIEWS], ids=str)
def test_attack_is_refused_and_changes_nothing(victim: Victim, attack: Attack) -> None:
    check_refused(attack, victim)
