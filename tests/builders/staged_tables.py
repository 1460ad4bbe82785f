"""Creating tables that were staged, as Iceberg's clients do it."""

from __future__ import annotations

from typing import Any

import httpx


def creation(staged: dict[str, Any]) -> dict[str, Any]:
    """Return the commit that creates a staged table of one schema, with the uuid and the location that it was given."""
    (schema,) = staged["schemas"]
    updates = [
        {"action": "assign-uuid", "uuid": staged["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": schema, "last-column-id": staged["last-column-id"]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": staged["location"]},
    ]
    return {"requirements": [{"type": "assert-create"}], "updates": updates}


def land(
    client: httpx.Client, namespace: str, name: str, staged: dict[str, Any], prefix: str = "/v1"
) -> httpx.Response:
    """Send the commit that creates a staged table of one schema."""
    return client.post(f"{prefix}/namespaces/{namespace}/tables/{name}", json=creation(staged))
