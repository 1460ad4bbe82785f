"""Namespaces."""

from __future__ import annotations

from contextlib import suppress

import orjson
from fastapi import APIRouter
from starlette.responses import Response

from app.api.bodies.json_body import parse_body
from app.api.bodies.namespaces import (
    CreateNamespaceBody,
    UpdatePropertiesBody,
    namespace_json,
    namespaces_json,
    property_changes_json,
)
from app.api.dependencies import Visit, Visited
from app.api.idempotency import done_once, run_once
from app.api.names_in_paths import namespaces_in_parent
from app.api.responses.answers import json_answer, no_content
from app.api.responses.paging import next_page_token, page_in_query
from app.catalog import namespaces
from app.catalog.context.catalog import Catalog
from app.engine.model.identifiers import LEVEL_SEPARATOR, Namespace
from app.errors import InvalidPageToken, NoSuchNamespace

router = APIRouter()


@router.get("/v1/namespaces")
def list_namespaces(visit: Visited) -> Response:
    """List the children of a namespace, or the outermost namespaces."""
    readings = namespaces_in_parent(visit.query.get("parent", ""), visit.literal_query.get("parent", ""))
    if not readings:
        return _children(visit, None)
    first, *others = readings
    try:
        return _children(visit, first)
    except (NoSuchNamespace, InvalidPageToken):
        for other in others:
            with suppress(NoSuchNamespace):
                return _children(visit, other)
        raise


def _children(visit: Visit, parent: Namespace | None) -> Response:
    catalog = visit.catalog
    above = LEVEL_SEPARATOR.join(parent.levels) if parent else ""
    listing = f"namespaces {catalog.page_key} {above}"
    found = namespaces.list_namespaces(catalog, parent, page_in_query(visit.query, listing))
    return json_answer(namespaces_json(found.items, next_page_token(found.next_after, listing)))


@router.post("/v1/namespaces")
def create_namespace(visit: Visited) -> Response:
    """Create a namespace."""
    body = parse_body(CreateNamespaceBody, visit.body)
    namespace = Namespace(body.namespace)
    properties = body.properties or {}

    def mutate(catalog: Catalog) -> Response:
        namespaces.create_namespace(catalog, namespace, properties)
        return replay()

    def replay(_result: str = "") -> Response:
        return json_answer(namespace_json(namespace, properties))

    return run_once(visit, mutate, replay)


@router.get("/v1/namespaces/{namespace}")
def load_namespace(visit: Visited) -> Response:
    """Return the properties of a namespace."""
    namespace = visit.namespace
    properties = namespaces.load_namespace(visit.catalog, namespace)
    return json_answer(namespace_json(namespace, properties))


@router.head("/v1/namespaces/{namespace}")
def namespace_exists(visit: Visited) -> Response:
    """Answer whether a namespace exists."""
    namespaces.load_namespace(visit.catalog, visit.namespace)
    return no_content()


@router.delete("/v1/namespaces/{namespace}")
def drop_namespace(visit: Visited) -> Response:
    """Drop an empty namespace."""
    return done_once(visit, lambda catalog: namespaces.drop_namespace(catalog, visit.namespace))


@router.post("/v1/namespaces/{namespace}/properties")
def update_properties(visit: Visited) -> Response:
    """Set and remove properties of a namespace."""
    body = parse_body(UpdatePropertiesBody, visit.body)

    def mutate(catalog: Catalog) -> Response:
        changes = namespaces.update_namespace_properties(
            catalog, visit.namespace, body.removals or (), body.updates or {}
        )
        return json_answer(property_changes_json(changes.updated, changes.removed, changes.missing))

    return run_once(visit, mutate, lambda result: json_answer(property_changes_json(**orjson.loads(result))))
