"""JSON of namespaces: create, properties, listings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from app.api.bodies.json_answer import page_json
from app.api.bodies.json_body import Body
from app.engine.model.identifiers import Namespace


class CreateNamespaceBody(Body):
    namespace: tuple[str, ...]
    properties: dict[str, str] | None = None


class UpdatePropertiesBody(Body):
    removals: tuple[str, ...] | None = None
    updates: dict[str, str] | None = None


def namespace_json(namespace: Namespace, properties: Mapping[str, str]) -> bytes:
    """Return a namespace with its properties."""
    return orjson.dumps({"namespace": namespace.levels, "properties": dict(properties)})


def namespaces_json(namespaces: Sequence[Namespace], next_page_token: str | None) -> bytes:
    """Return a page of full namespace names."""
    return page_json({"namespaces": [namespace.levels for namespace in namespaces]}, next_page_token)


def property_changes_json(updated: Sequence[str], removed: Sequence[str], missing: Sequence[str]) -> bytes:
    """Return which properties were set, which were removed, and which had not been there."""
    return orjson.dumps({"updated": list(updated), "removed": list(removed), "missing": list(missing)})
