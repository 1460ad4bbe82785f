"""Parts of request bodies, as the protocol writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.engine.model.identifiers import TableIdentifier

JsonObject = dict[str, Any]
Changes = Sequence[tuple[TableIdentifier, Sequence[JsonObject], Sequence[JsonObject]]]
"""For each table its name, the updates and the requirements."""


def identifier_body(identifier: TableIdentifier) -> JsonObject:
    """Return the name of a table or view."""
    return {"namespace": [*identifier.namespace.levels], "name": identifier.name}


def change_body(
    identifier: TableIdentifier, updates: Sequence[JsonObject], requirements: Sequence[JsonObject]
) -> JsonObject:
    """Return a commit to one table or view."""
    return {
        "identifier": identifier_body(identifier),
        "requirements": [*requirements],
        "updates": [*updates],
    }


def given(fields: Mapping[str, Any]) -> JsonObject:
    """Return the fields that have a value."""
    return {key: value for key, value in fields.items() if value is not None}
