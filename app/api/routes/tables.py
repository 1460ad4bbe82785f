"""Tables: all but loading, probing and committing, which have a quicker road of their own."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.api.answers import json_answer, loaded_table_answer, no_content
from app.api.bodies.identifiers import RenameBody, identifiers_json
from app.api.bodies.json_body import parse_body
from app.api.bodies.tables import CreateTableBody, RegisterTableBody, loaded_json, table_config
from app.api.dependencies import Visit, Visited
from app.api.idempotency import run_once
from app.api.paging import page_in_query, page_token
from app.catalog import tables
from app.catalog.commits import LoadedTable
from app.catalog.context import Call
from app.engine.model.identifiers import LEVEL_SEPARATOR, TableIdentifier, check_identifier
from app.errors import InvalidRequest

router = APIRouter()


@router.get("/v1/namespaces/{namespace}/tables")
def list_tables(visit: Visited) -> Response:
    """List the tables of a namespace."""
    warehouse, namespace = visit.warehouse, visit.namespace
    listing = f"tables {warehouse.id} {LEVEL_SEPARATOR.join(namespace.levels)}"
    found = tables.list_tables(visit.catalog, warehouse, namespace, page_in_query(visit.query, listing))
    token = None if found.next_after is None else page_token(found.next_after, listing)
    return json_answer(identifiers_json(namespace, found.items, token))


@router.post("/v1/namespaces/{namespace}/tables")
def create_table(visit: Visited) -> Response:
    """Create a table, or tell what it would be."""
    body = parse_body(CreateTableBody, visit.body)
    identifier = check_identifier(TableIdentifier(visit.namespace, body.name))
    new = tables.NewTable(
        identifier, body.schema_, body.partition_spec, body.write_order, body.location, body.properties or {}
    )
    if body.stage_create:
        # Nothing is stored, so there is nothing to remember under an Idempotency-Key.
        return _loaded(tables.stage_table(visit.catalog, visit.warehouse, new))

    def mutate(call: Call) -> Response:
        return _loaded(tables.create_table(visit.catalog, call, visit.warehouse, new))

    return run_once(visit, mutate, lambda result: _loaded(_recorded(visit, identifier, result)))


@router.post("/v1/namespaces/{namespace}/register")
def register_table(visit: Visited) -> Response:
    """Take a metadata file into the catalog."""
    body = parse_body(RegisterTableBody, visit.body)
    identifier = check_identifier(TableIdentifier(visit.namespace, body.name))

    def mutate(call: Call) -> Response:
        return _loaded(
            tables.register_table(
                visit.catalog,
                call,
                visit.warehouse,
                identifier,
                body.metadata_location,
                overwrite=bool(body.overwrite),
            )
        )

    return run_once(visit, mutate, lambda result: _loaded(_recorded(visit, identifier, result)))


@router.post("/v1/namespaces/{namespace}/tables/{table}/unregister")
def unregister_table(visit: Visited) -> Response:
    """Let a table go."""

    def mutate(call: Call) -> Response:
        return _unregistered(tables.unregister_table(visit.catalog, call, visit.warehouse, visit.table))

    return run_once(visit, mutate, lambda result: _unregistered(_recorded(visit, visit.table, result)))


@router.delete("/v1/namespaces/{namespace}/tables/{table}")
def drop_table(visit: Visited) -> Response:
    """Drop a table, with its files if that is asked for."""
    purge = _is_true(visit, "purgeRequested")

    def mutate(call: Call) -> Response:
        tables.drop_table(visit.catalog, call, visit.warehouse, visit.table, purge=purge)
        return no_content()

    return run_once(visit, mutate, lambda _result: no_content())


@router.post("/v1/tables/rename")
def rename_table(visit: Visited) -> Response:
    """Give a table another name."""
    body = parse_body(RenameBody, visit.body)
    source, destination = body.source.checked(), body.destination.checked()

    def mutate(call: Call) -> Response:
        tables.rename_table(visit.catalog, call, visit.warehouse, source, destination)
        return no_content()

    return run_once(visit, mutate, lambda _result: no_content())


def _loaded(loaded: LoadedTable) -> Response:
    return loaded_table_answer(loaded, table_config(loaded.metadata.properties))


def _recorded(visit: Visit, identifier: TableIdentifier, location: str) -> LoadedTable:
    return tables.load_recorded(visit.catalog, visit.warehouse, identifier, location)


def _unregistered(loaded: LoadedTable) -> Response:
    return json_answer(loaded_json(loaded.location, loaded.json, {}))


def _is_true(visit: Visit, parameter: str) -> bool:
    value = visit.query.get(parameter, "").lower()
    if value in ("true", "false", ""):
        return value == "true"
    raise InvalidRequest(f"Invalid {parameter} {value[:100]!r}: it must be true or false")
