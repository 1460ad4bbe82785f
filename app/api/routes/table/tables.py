"""Tables, except loads and commits, which are in `loads` and `commits`."""

from __future__ import annotations

from functools import partial

import orjson
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies.json_body import parse_body
from app.api.bodies.table.tables import (
    AdoptTableBody,
    CreateTableBody,
    RegisterTableBody,
    loaded_json,
    table_config,
)
from app.api.dependencies import Visit, Visited, open_visit
from app.api.idempotency import done_once, run_once
from app.api.named_answers import loaded_once, rename_answer, shared_names_answer, unregistered_answer
from app.api.names_in_paths import true_or_false
from app.api.responses.answers import json_answer
from app.api.responses.table_answers import table_answer
from app.catalog import adoptions, named, tables
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, LoadedTable
from app.engine.model.identifiers import TableIdentifier, check_identifier

router = APIRouter()


async def list_tables(request: Request) -> Response:
    """List the tables of a namespace; clients and people do so again and again."""
    visit = await open_visit(request)
    return await shared_names_answer(visit, TABLES)


async def create_table(request: Request) -> Response:
    """Create a table, or return what it would be; past FastAPI's dependencies."""
    visit = await open_visit(request)
    return await visit.in_convoy(lambda: _created(visit))


def _created(visit: Visit) -> Response:
    body = parse_body(CreateTableBody, visit.body)
    identifier = check_identifier(TableIdentifier(visit.namespace, body.name))
    new = tables.NewTable(
        identifier, body.schema_, body.partition_spec, body.write_order, body.location, body.properties or {}
    )
    if body.stage_create:
        # Nothing is stored, so there is nothing to remember under an Idempotency-Key.
        return _loaded(visit, tables.stage_table(visit.catalog, new))
    return loaded_once(
        visit, TABLES, identifier, lambda catalog: named.create(catalog, new), partial(_loaded, visit)
    )


@router.post("/v1/namespaces/{namespace}/register")
def register_table(visit: Visited) -> Response:
    """Register a metadata file as a table."""
    body = parse_body(RegisterTableBody, visit.body)
    identifier = check_identifier(TableIdentifier(visit.namespace, body.name))

    def mutate(catalog: Catalog) -> LoadedTable:
        return named.register(
            catalog,
            TABLES,
            identifier,
            body.metadata_location,
            overwrite=bool(body.overwrite),
            read_only=bool(body.read_only),
            expected=body.expected_metadata_location,
        )

    return loaded_once(visit, TABLES, identifier, mutate, partial(_loaded, visit))


@router.post("/v1/namespaces/{namespace}/adopt")
def adopt_table(visit: Visited) -> Response:
    """Extension: make a file-system table a table of the catalog."""
    body = visit.extension_body(AdoptTableBody)
    identifier = check_identifier(TableIdentifier(visit.namespace, body.name))
    return run_once(
        visit,
        lambda catalog: _adopted(adoptions.adopt_table(catalog, identifier, body.location)),
        lambda recorded: _adopted(adoptions.adopted_from(visit.catalog, recorded)),
    )


@router.post("/v1/namespaces/{namespace}/tables/{table}/unregister")
def unregister_table(visit: Visited) -> Response:
    """Unregister a table."""
    return unregistered_answer(visit, TABLES, visit.table, _unregistered)


@router.delete("/v1/namespaces/{namespace}/tables/{table}")
def drop_table(visit: Visited) -> Response:
    """Drop a table, with its files if that is asked for."""
    purge = true_or_false("purgeRequested", visit.query.get("purgeRequested", ""))
    if purge:
        return done_once(visit, lambda catalog: tables.purge_table(catalog, visit.table))
    return done_once(visit, lambda catalog: named.drop(catalog, TABLES, visit.table))


@router.post("/v1/tables/rename")
def rename_table(visit: Visited) -> Response:
    """Give a table another name."""
    return rename_answer(visit, TABLES)


def _loaded(visit: Visit, loaded: LoadedTable) -> Response:
    return table_answer(visit.parts.packed_answers, loaded, table_config(loaded.metadata.properties))


def _adopted(adopted: adoptions.Adopted) -> Response:
    answer = {
        "metadata-location": adopted.metadata_location,
        "version": adopted.version,
        "later-versions": adopted.later,
    }
    return json_answer(orjson.dumps(answer))


def _unregistered(loaded: LoadedTable) -> Response:
    return json_answer(loaded_json(loaded.location, loaded.json, {}))
