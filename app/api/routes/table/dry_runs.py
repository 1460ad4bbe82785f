"""Dry runs of commits: an extension, which writes nothing."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.api.bodies.identifiers import check_same
from app.api.bodies.table.commits import parse_commit, parse_transaction
from app.api.bodies.table.dry_runs import dry_run_json, table_dry_run_json
from app.api.dependencies import Visited
from app.api.rebase_headers import rebase_request
from app.api.responses.answers import json_answer
from app.catalog.commits import dry_runs

router = APIRouter()


@router.post("/v1/namespaces/{namespace}/tables/{table}/validate")
def validate_commit(visit: Visited) -> Response:
    """Return what a commit to a table would do."""
    identifier = visit.table
    body = parse_commit(visit.body)
    check_same(body.identifier, identifier)
    found = dry_runs.dry_run_commit(
        visit.catalog, identifier, body.requirements or (), body.updates or (), rebase_request(visit)
    )
    return json_answer(table_dry_run_json(found, visit.prefix))


@router.post("/v1/transactions/validate")
def validate_transaction(visit: Visited) -> Response:
    """Return what a commit to several tables would do."""
    commits = parse_transaction(visit.body).commits(rebase_request(visit))
    found = dry_runs.dry_run_transaction(visit.catalog, commits)
    return json_answer(dry_run_json(found, visit.prefix))
