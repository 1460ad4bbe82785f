"""Commits to tables, alone and in transactions."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app.api.answers import loaded_table_answer, no_content
from app.api.bodies.commits import CommitTableBody, CommitTransactionBody
from app.api.bodies.identifiers import check_same
from app.api.bodies.json_body import parse_body
from app.api.dependencies import Visit, Visited, open_visit
from app.api.idempotency import run_once
from app.catalog import named
from app.catalog.commits import table_commits
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES

router = APIRouter()


async def commit_table(request: Request) -> Response:
    """Commit changes to a table; on the quick road, past FastAPI's dependencies."""
    visit = await open_visit(request)
    return await run_in_threadpool(_commit_table, visit)


def _commit_table(visit: Visit) -> Response:
    identifier = visit.table
    body = parse_body(CommitTableBody, visit.body)
    check_same(body.identifier, identifier)

    def mutate(catalog: Catalog) -> Response:
        return loaded_table_answer(
            table_commits.commit_table(catalog, identifier, body.requirements, body.updates)
        )

    def replay(location: str) -> Response:
        return loaded_table_answer(named.load_recorded(visit.catalog, TABLES, identifier, location))

    return run_once(visit, mutate, replay)


@router.post("/v1/transactions/commit")
def commit_transaction(visit: Visited) -> Response:
    """Commit changes to several tables, all or none."""
    commits = parse_body(CommitTransactionBody, visit.body).commits()

    def mutate(catalog: Catalog) -> Response:
        table_commits.commit_transaction(catalog, commits)
        return no_content()

    return run_once(visit, mutate, lambda _result: no_content())
