"""Attacks in the shape of commits to the tables with a history."""

from __future__ import annotations

from typing import Any

from tests.bad_input.attacks import CONFLICT, POST, Attack
from tests.bad_input.commit_bodies import SECOND, THIRD, act, snapshot

TABLES, VIEW = "/v1/namespaces/a/tables", "/v1/namespaces/a/views/v"
NEVER = "0e4d5ad5-9d5c-4a4b-8f3f-6d1a4d3a2c11"
COLUMN: dict[str, Any] = {"id": 12, "name": "new", "type": "int", "required": False}


def committing(
    name: str, message: str, *updates: Any, status: int = 400, version: int = 2, requirements: Any = ()
) -> Attack:
    """Return a commit to the table with a history, in a format version."""
    body = {"requirements": list(requirements), "updates": list(updates)}
    return Attack(
        name, POST, f"{TABLES}/v{version}", status, message, CONFLICT if status == 409 else "", body
    )


def requiring(name: str, message: str, *requirements: Any, status: int = 409) -> Attack:
    """Return a commit that is fine but for its requirements."""
    return committing(
        name, message, act("set-properties", updates={"a": "b"}), status=status, requirements=requirements
    )


def new(version: int = 2, sequence: int = 3, **fields: Any) -> dict[str, Any]:
    """Return an update that adds a snapshot on top of the last."""
    changes = {key.replace("_", "-"): value for key, value in fields.items()}
    return act(
        "add-snapshot",
        snapshot=snapshot(version, THIRD, sequence, "$LOCATION", **{"parent-snapshot-id": SECOND, **changes}),
    )


def without(update: dict[str, Any], key: str) -> dict[str, Any]:
    """Return an update that adds a snapshot without one of its fields."""
    return act(
        "add-snapshot", snapshot={name: item for name, item in update["snapshot"].items() if name != key}
    )
