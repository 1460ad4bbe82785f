"""Facts about tables and views for people. Any version of metadata is read; absent fields are left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.cli.terminal.texts import moment_text, property_lines

Json = Mapping[str, Any]


def table_facts(name: str, metadata_location: str | None, metadata: Json) -> list[tuple[str, object]]:
    """Return the facts about a table that fit on one screen."""
    schema = _of_id(metadata.get("schemas"), "schema-id", metadata.get("current-schema-id"))
    spec = _of_id(metadata.get("partition-specs"), "spec-id", metadata.get("default-spec-id"))
    order = _of_id(metadata.get("sort-orders"), "order-id", metadata.get("default-sort-order-id"))
    columns = column_lines(schema or metadata.get("schema") or {})
    names = _field_names(schema or {})
    current = _of_id(metadata.get("snapshots"), "snapshot-id", metadata.get("current-snapshot-id"))
    return [
        ("table", name),
        ("uuid", metadata.get("table-uuid")),
        ("format version", metadata.get("format-version")),
        ("location", metadata.get("location")),
        ("metadata", metadata_location),
        ("last updated", moment_text(metadata.get("last-updated-ms"))),
        ("columns", columns),
        ("partitioned by", [_partition_field(field, names) for field in (spec or {}).get("fields", [])]),
        ("sorted by", [_sort_field(field, names) for field in (order or {}).get("fields", [])]),
        ("current snapshot", _snapshot_line(current) if current else "none: the table is empty"),
        ("snapshots", len(metadata.get("snapshots") or [])),
        ("branches and tags", [_ref_line(ref, value) for ref, value in (metadata.get("refs") or {}).items()]),
        ("properties", property_lines(metadata.get("properties"))),
    ]


def view_facts(name: str, metadata_location: str | None, metadata: Json) -> list[tuple[str, object]]:
    """Return the facts about a view that fit on one screen."""
    version = _of_id(metadata.get("versions"), "version-id", metadata.get("current-version-id")) or {}
    schema = _of_id(metadata.get("schemas"), "schema-id", version.get("schema-id")) or {}
    texts: list[tuple[str, object]] = [
        (f"SQL ({text.get('dialect')})", str(text["sql"]).splitlines())
        if text.get("sql")
        else ("query", f"of type {text.get('type')}")
        for text in version.get("representations", [])
    ]
    return [
        ("view", name),
        ("uuid", metadata.get("view-uuid")),
        ("format version", metadata.get("format-version")),
        ("location", metadata.get("location")),
        ("metadata", metadata_location),
        ("version", f"{version.get('version-id')} of {moment_text(version.get('timestamp-ms'))}"),
        ("default namespace", ".".join(version.get("default-namespace") or [])),
        ("columns", column_lines(schema)),
        *texts,
        ("properties", property_lines(metadata.get("properties"))),
    ]


def column_lines(schema: Json) -> list[str]:
    """Return one line for each column: id, name, type, and whether it is required."""
    keys = schema.get("identifier-field-ids") or []
    lines = []
    for field in schema.get("fields", []):
        required = " required" if field.get("required") else ""
        key = " identifier" if field.get("id") in keys else ""
        doc = f"  – {field['doc']}" if field.get("doc") else ""
        lines.append(
            f"{field.get('id')}: {field.get('name')} {type_text(field.get('type'))}{required}{key}{doc}"
        )
    return lines


def type_text(kind: object) -> str:
    """Return a column type in one line."""
    if not isinstance(kind, Mapping):
        return str(kind)
    match kind.get("type"):
        case "struct":
            inner = ", ".join(
                f"{field.get('name')}: {type_text(field.get('type'))}" for field in kind["fields"]
            )
            return f"struct<{inner}>"
        case "list":
            return f"list<{type_text(kind.get('element'))}>"
        case "map":
            return f"map<{type_text(kind.get('key'))}, {type_text(kind.get('value'))}>"
        case other:
            return str(other)


def _of_id(candidates: list[Json] | None, key: str, wanted: object) -> Json | None:
    return next((found for found in candidates or [] if found.get(key) == wanted), None)


def _field_names(schema: Json) -> dict[object, str]:
    names: dict[object, str] = {}

    def collect(fields: list[Json], prefix: str) -> None:
        for field in fields:
            names[field.get("id")] = f"{prefix}{field.get('name')}"
            kind = field.get("type")
            if isinstance(kind, Mapping) and kind.get("type") == "struct":
                collect(kind.get("fields", []), f"{names[field.get('id')]}.")

    collect(schema.get("fields", []), "")
    return names


def _transformed(field: Json, names: Mapping[object, str]) -> str:
    sources = field.get("source-ids") or [field.get("source-id")]
    columns = ", ".join(names.get(source, f"field {source}") for source in sources)
    transform = field.get("transform")
    return columns if transform == "identity" else f"{transform}({columns})"


def _partition_field(field: Json, names: Mapping[object, str]) -> str:
    source, name = _transformed(field, names), field.get("name")
    return source if source == name else f"{source} as {name}"


def _sort_field(field: Json, names: Mapping[object, str]) -> str:
    return f"{_transformed(field, names)} {field.get('direction')} {field.get('null-order')}"


def _snapshot_line(snapshot: Json) -> str:
    summary = snapshot.get("summary") or {}
    records = f", records: {summary['total-records']}" if "total-records" in summary else ""
    operation = summary.get("operation", "unknown operation")
    return (
        f"{snapshot.get('snapshot-id')} ({operation} at {moment_text(snapshot.get('timestamp-ms'))}{records})"
    )


def _ref_line(ref: str, value: Json) -> str:
    return f"{ref} ({value.get('type')}) → {value.get('snapshot-id')}"
