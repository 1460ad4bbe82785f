"""Attacks in the shape of new tables."""

from __future__ import annotations

from typing import Any

from tests.bad_input.attacks import POST, Attack

TABLES, VIEWS = "/v1/namespaces/a/tables", "/v1/namespaces/a/views"
ID: dict[str, Any] = {"id": 1, "name": "id", "type": "long", "required": True}
LIST = {"type": "list", "element-id": 3, "element": "int", "element-required": False}
STRUCT = {"type": "struct", "fields": [{"id": 3, "name": "x", "type": "int", "required": False}]}


def column(kind: Any, field_id: Any = 2, name: Any = "c", **fields: Any) -> dict[str, Any]:
    """Return an optional column."""
    return {"id": field_id, "name": name, "type": kind, "required": False, **fields}


def making(name: str, message: str, *columns: Any, version: Any = "", **fields: Any) -> Attack:
    """Return an attempt to create a table of an id and these columns."""
    body: dict[str, Any] = {"name": "x", "schema": {"type": "struct", "fields": [ID, *columns]}, **fields}
    if version:
        body["properties"] = {"format-version": version}
    return Attack(name, POST, TABLES, 400, message, body=body)


def making_from(name: str, message: str, schema: Any) -> Attack:
    """Return an attempt to create a table of a schema."""
    return Attack(name, POST, TABLES, 400, message, body={"name": "x", "schema": schema})
