"""Commits to tables, alone and in transactions."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app.api.answers import loaded_table_answer
from app.api.bodies.commits import CommitBody, CommitTransactionBody
from app.api.bodies.identifiers import check_same
from app.api.bodies.json_body import parse_body
from app.api.dependencies import Visit, Visited, open_visit
from app.api.idempotency import Once, done_once
from app.catalog import named
from app.catalog.commits import table_commits
from app.catalog.commits.landing import Landing
from app.catalog.commits.table_commits import TableCommit
from app.catalog.context.kinds import TABLES
from app.errors import IcetowerError

router = APIRouter()


async def commit_table(request: Request) -> Response:
    """Commit changes to a table; on the quick road, past FastAPI's dependencies."""
    visit = await open_visit(request)
    commit = _Commit(visit)
    answer = await visit.in_thread(commit.begin)
    return answer or await commit.end()


class _Commit:
    """One commit on its way: it holds no thread while others to the same table go before it."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._once: Once
        self._landing: Landing[Any, Any]

    def begin(self) -> Response | None:
        """Begin in a thread; return the answer, or None if it has to wait first."""
        visit, identifier = self._visit, self._visit.table
        body = parse_body(CommitBody, visit.body)
        check_same(body.identifier, identifier)

        def replay(location: str) -> Response:
            return loaded_table_answer(named.load_recorded(visit.catalog, TABLES, identifier, location))

        self._once = Once(visit, replay)
        earlier = self._once.earlier()
        if earlier is not None:
            return earlier
        commit = TableCommit(identifier, body.requirements or (), body.updates or ())
        self._landing = table_commits.begin_commit(self._once.catalog(), commit)
        return self._answer() if self._landing.works else None

    async def end(self) -> Response:
        """Wait, and return the answer."""
        landing = self._landing
        try:
            await landing.wait_here()
            if landing.works:
                return await self._visit.in_thread(self._answer)
        except BaseException:
            landing.leave()  # Else those behind it would wait for it.
            raise
        # It is done: to wait for room is for those who begin something.
        return await run_in_threadpool(self._answer)

    def _answer(self) -> Response:
        try:
            return loaded_table_answer(self._landing.finish().loaded)
        except IcetowerError as error:
            return self._once.refused(error)


@router.post("/v1/transactions/commit")
def commit_transaction(visit: Visited) -> Response:
    """Commit changes to several tables, all or none."""
    commits = parse_body(CommitTransactionBody, visit.body).commits()
    return done_once(visit, lambda catalog: table_commits.commit_transaction(catalog, commits))
