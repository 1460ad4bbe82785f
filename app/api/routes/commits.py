"""Commits to tables, alone and in transactions."""

from __future__ import annotations

import asyncio
from dataclasses import replace
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
from app.catalog.commits.table_commits import Reserved, TableCommit
from app.catalog.context.kinds import TABLES
from app.catalog.slots.landing_slots import QueuedTable
from app.catalog.slots.retries import load_retries
from app.errors import CommitFailed, IcetowerError

router = APIRouter()


async def commit_table(request: Request) -> Response:
    """Commit changes to a table; on the quick road, past FastAPI's dependencies."""
    commit = _Commit(await open_visit(request), request)
    try:
        try:
            answer = await commit.attempt()
        except Reserved as reserved:
            answer = await commit.attempt_in_turn(reserved)
    except CommitFailed as error:
        await commit.hold(error)
        raise
    commit.note_landed()
    return answer


class _Commit:
    """One commit on its way: it holds no thread while others to the same table go before it."""

    def __init__(self, visit: Visit, request: Request) -> None:
        self._visit = visit
        self._request = request
        self._slots = visit.parts.slots
        self._once: Once
        self._commit: TableCommit | None = None
        self._landing: Landing[Any, Any]
        self._waiting: Landing[Any, Any] | None = None
        """The landing that waits in its line, and nothing works on here."""
        self._is_broken_off = False
        self._landed_at: int | None = None

    async def attempt(self) -> Response:
        """Carry it out and return the answer.

        Raises:
            Reserved: it has to wait for the slots of other writers first.
        """
        try:
            answer = await self._visit.in_thread(self._begin)
        except asyncio.CancelledError:
            # The thread goes on all the same: whichever of the two comes second leaves the line.
            self._is_broken_off = True
            if self._waiting is not None:
                self._waiting.leave()
            raise
        return answer or await self._end()

    async def attempt_in_turn(self, reserved: Reserved) -> Response:
        """Wait for the slots of other writers, then carry it out."""
        assert self._commit is not None
        self._commit = replace(self._commit, asks_first=False)
        await self._slots.ask(self._queued(reserved.pointer_id), reserved.writer)
        return await self.attempt()

    async def hold(self, error: CommitFailed) -> None:
        """Hold a refusal back until the client may try again, if that is because others came first."""
        commit = self._commit
        if commit is None or not self._slots.is_on or not table_commits.has_lost_race(commit, error):
            return
        assert commit.writer is not None
        try:
            pointer_id, retries, sequence = await run_in_threadpool(
                load_retries, self._visit.catalog, commit.identifier
            )
        except IcetowerError:
            return  # The refusal stands, whatever became of the table meanwhile.
        await self._slots.hold(self._queued(pointer_id), commit.writer, retries, sequence, self._is_wanted)

    def note_landed(self) -> None:
        """Let the queue of the table know."""
        if self._landed_at is not None and self._commit is not None and self._commit.writer is not None:
            self._slots.note_landed(self._queued(self._landed_at), self._commit.writer)

    def _queued(self, pointer_id: int) -> QueuedTable:
        assert self._commit is not None
        return QueuedTable(pointer_id, (self._visit.warehouse_name, self._commit.identifier))

    async def _is_wanted(self) -> bool:
        return not await self._request.is_disconnected()

    def _begin(self) -> Response | None:
        """Begin in a thread; return the answer, or None if it has to wait first."""
        if self._commit is None:
            self._commit = self._parsed()
        earlier = self._once.earlier()
        if earlier is not None:
            return earlier
        self._landing = table_commits.begin_commit(self._once.catalog(), self._commit)
        if self._landing.works:
            return self._answer()
        self._waiting = self._landing
        if self._is_broken_off:
            self._waiting.leave()
        return None

    def _parsed(self) -> TableCommit:
        visit, identifier = self._visit, self._visit.table
        body = parse_body(CommitBody, visit.body)
        check_same(body.identifier, identifier)

        def replay(location: str) -> Response:
            return loaded_table_answer(named.load_recorded(visit.catalog, TABLES, identifier, location))

        self._once = Once(visit, replay)
        requirements, updates = body.requirements or (), body.updates or ()
        return TableCommit(identifier, requirements, updates, asks_first=self._slots.is_on)

    async def _end(self) -> Response:
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
            landed = self._landing.finish()
        except IcetowerError as error:
            return self._once.refused(error)
        if landed.base.found is not None:
            self._landed_at = landed.base.found.id
        return loaded_table_answer(landed.loaded)


@router.post("/v1/transactions/commit")
def commit_transaction(visit: Visited) -> Response:
    """Commit changes to several tables, all or none."""
    commits = parse_body(CommitTransactionBody, visit.body).commits()
    return done_once(visit, lambda catalog: table_commits.commit_transaction(catalog, commits))
