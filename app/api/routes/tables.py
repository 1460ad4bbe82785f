"""Tables: all but loading, probing and committing, which have a quicker road of their own."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.api.answers import json_answer, loaded_table_answer, no_content
from app.api.bodies.json_body import parse_body
from app.api.bodies.tables import CreateTableBody, RegisterTableBody, loaded_json, table_config
from app.api.dependencies import Visit, Visited
from app.api.idempotency import run_once
from app.api.named_answers import names_answer, rename_answer
from app.catalog import named, tables
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, LoadedTable
from app.engine.model.identifiers import TableIdentifier, check_identifier
from app.errors import InvalidRequest

router = APIRouter()


@router.get("/v1/namespaces/{namespace}/tables")
def list_tables(visit: Visited) -> Response:
    """List the tables of a namespace."""
    return names_answer(visit, TABLES)


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
        return _loaded(tables.stage_table(visit.catalog, new))

    def mutate(catalog: Catalog) -> Response:
        return _loaded(named.create(catalog, new))

    return run_once(visit, mutate, lambda result: _loaded(_recorded(visit, identifier, result)))


@router.post("/v1/namespaces/{namespace}/register")
def register_table(visit: Visited) -> Response:
    """Take a metadata file into the catalog."""
    body = parse_body(RegisterTableBody, visit.body)
    identifier = check_identifier(TableIdentifier(visit.namespace, body.name))

    def mutate(catalog: Catalog) -> Response:
        return _loaded(
            named.register(
                catalog, TABLES, identifier, body.metadata_location, overwrite=bool(body.overwrite)
            )
        )

    return run_once(visit, mutate, lambda result: _loaded(_recorded(visit, identifier, result)))


@router.post("/v1/namespaces/{namespace}/tables/{table}/unregister")
def unregister_table(visit: Visited) -> Response:
    """Let a table go."""

    def mutate(catalog: Catalog) -> Response:
        return _unregistered(tables.unregister_table(catalog, visit.table))

    return run_once(
        visit,
        mutate,
        lambda result: _unregistered(named.load_as_recorded(visit.catalog, TABLES, visit.table, result)),
    )


@router.delete("/v1/namespaces/{namespace}/tables/{table}")
def drop_table(visit: Visited) -> Response:
    """Drop a table, with its files if that is asked for."""
    purge = _is_true(visit, "purgeRequested")

    def mutate(catalog: Catalog) -> Response:
        if purge:
            tables.purge_table(catalog, visit.table)
        else:
            named.drop(catalog, TABLES, visit.table)
        return no_content()

    return run_once(visit, mutate, lambda _result: no_content())


@router.post("/v1/tables/rename")
def rename_table(visit: Visited) -> Response:
    """Give a table another name."""
    return rename_answer(visit, TABLES)


def _loaded(loaded: LoadedTable) -> Response:
    return loaded_table_answer(loaded, table_config(loaded.metadata.properties))


def _recorded(visit: Visit, identifier: TableIdentifier, location: str) -> LoadedTable:
    return named.load_recorded(visit.catalog, TABLES, identifier, location)


def _unregistered(loaded: LoadedTable) -> Response:
    return json_answer(loaded_json(loaded.location, loaded.json, {}))


def _is_true(visit: Visit, parameter: str) -> bool:
    value = visit.query.get(parameter, "").lower()
    if value in ("true", "false", ""):
        return value == "true"
    raise InvalidRequest(f"Invalid {parameter} {value[:100]!r}: it must be true or false")
