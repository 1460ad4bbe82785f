"""Dry runs of commits: an extension, which writes nothing."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.api.answers import json_answer
from app.api.bodies.commits import CommitTableBody, CommitTransactionBody
from app.api.bodies.identifiers import check_same
from app.api.bodies.json_body import parse_body
from app.api.bodies.validation import table_verdict_json, verdict_json
from app.api.dependencies import Visited
from app.catalog import validation

router = APIRouter()


@router.post("/v1/namespaces/{namespace}/tables/{table}/validate")
def validate_commit(visit: Visited) -> Response:
    """Tell what a commit to a table would do."""
    identifier = visit.table
    body = parse_body(CommitTableBody, visit.body)
    check_same(body.identifier, identifier)
    verdict = validation.validate_commit(
        visit.catalog, visit.warehouse, identifier, body.requirements, body.updates
    )
    return json_answer(table_verdict_json(verdict, visit.prefix))


@router.post("/v1/transactions/validate")
def validate_transaction(visit: Visited) -> Response:
    """Tell what a commit to several tables would do."""
    changes = parse_body(CommitTransactionBody, visit.body).changes()
    verdict = validation.validate_transaction(visit.catalog, visit.warehouse, changes)
    return json_answer(verdict_json(verdict, visit.prefix))
