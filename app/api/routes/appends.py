"""Appending files by reference: an extension, for every program that can write Parquet."""

from __future__ import annotations

import orjson
from fastapi import APIRouter
from starlette.responses import Response

from app.api.answers import json_answer
from app.api.bodies.appends import AppendFilesBody
from app.api.bodies.json_body import parse_body
from app.api.dependencies import Visited
from app.api.idempotency import run_once
from app.catalog import appends
from app.catalog.context.catalog import Catalog

router = APIRouter()


@router.post("/v1/namespaces/{namespace}/tables/{table}/append")
def append_files(visit: Visited) -> Response:
    """Append data files that are in storage already."""
    identifier = visit.table
    request = parse_body(AppendFilesBody, visit.body).request()

    def mutate(catalog: Catalog) -> Response:
        appended, location = appends.append_files(catalog, identifier, request)
        return json_answer(orjson.dumps(appended.facts(location)))

    return run_once(visit, mutate, lambda recorded: json_answer(recorded.encode()))
