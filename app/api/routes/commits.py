"""Commits to tables, alone and in transactions."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.api.answers import loaded_table_answer
from app.api.bodies.commits import CommitBody, CommitTransactionBody
from app.api.bodies.identifiers import check_same
from app.api.bodies.json_body import parse_body
from app.api.dependencies import Visit, Visited, open_visit
from app.api.idempotency import done_once
from app.api.named_answers import loaded_once
from app.api.rebase_headers import rebase_request
from app.catalog.commits import table_commits
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES, LoadedTable

router = APIRouter()


async def commit_table(request: Request) -> Response:
    """Commit changes to a table; on the quick road, past FastAPI's dependencies."""
    visit = await open_visit(request)
    return await visit.in_thread(lambda: _commit_table(visit))


def _commit_table(visit: Visit) -> Response:
    identifier = visit.table
    body = parse_body(CommitBody, visit.body)
    check_same(body.identifier, identifier)
    rebasing = rebase_request(visit)

    def mutate(catalog: Catalog) -> LoadedTable:
        requirements, updates = body.requirements or (), body.updates or ()
        return table_commits.commit_table(catalog, identifier, requirements, updates, rebasing)

    return loaded_once(visit, TABLES, identifier, mutate, loaded_table_answer)


@router.post("/v1/transactions/commit")
def commit_transaction(visit: Visited) -> Response:
    """Commit changes to several tables, all or none."""
    commits = parse_body(CommitTransactionBody, visit.body).commits(rebase_request(visit))
    return done_once(visit, lambda catalog: table_commits.commit_transaction(catalog, commits))
