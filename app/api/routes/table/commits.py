"""Commits to tables, alone and in transactions."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies.identifiers import check_same
from app.api.bodies.table.commits import parse_commit, parse_transaction
from app.api.dependencies import Visit, Visited, open_visit
from app.api.idempotency import done_once
from app.api.landings import land_once
from app.api.rebase_headers import rebase_request
from app.api.responses.table_answers import table_answer
from app.catalog import named
from app.catalog.commits import table_commits
from app.catalog.commits.intentions import Landed, Reserved
from app.catalog.commits.landing import Landing
from app.catalog.commits.table_commits import TableCommit
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.slots.landing_slots import QueuedTable
from app.catalog.slots.queue import Before
from app.catalog.slots.retries import load_retries
from app.engine.model.table_metadata import TableMetadata
from app.errors import CommitFailed, IcetowerError

router = APIRouter()


async def commit_table(request: Request) -> Response:
    """Commit changes to a table; on the quick road, past FastAPI's dependencies."""
    commit = _Commit(await open_visit(request), request)
    commit.note_coming()
    try:
        try:
            answer = await commit.attempt()
        except Reserved as reserved:
            answer = await commit.attempt_in_turn(reserved)
    except CommitFailed as error:
        has_lost = commit.has_lost_race(error)
        commit.note_end(has_lost=has_lost)
        if has_lost:
            await commit.hold()
        raise
    except BaseException:
        commit.note_end(has_lost=False)
        raise
    commit.note_end(has_lost=False)
    commit.note_landed()
    return answer


class _Commit:
    """One commit on its way: it holds no thread while others to the same table go before it."""

    def __init__(self, visit: Visit, request: Request) -> None:
        self._visit = visit
        self._request = request
        self._slots = visit.parts.slots
        self._held_loads = visit.parts.held_loads
        # A literal plus can be a space in another name: which one it is only the database knows, and not here.
        client = None if visit.has_plus else visit.client
        self._sender = None if client is None else ((visit.warehouse_name, visit.table), client)
        self._commit: TableCommit | None = None
        self._landed_at: int | None = None

    async def attempt(self) -> Response:
        """Carry it out and return the answer.

        Raises:
            Reserved: it has to wait for the slots of other writers first.
        """
        return await land_once(self._visit, self._begin, self._answer, self._replay, is_commit=True)

    async def attempt_in_turn(self, reserved: Reserved) -> Response:
        """Wait for the slots of other writers, then carry it out."""
        assert self._commit is not None
        self._commit = replace(self._commit, asks_first=False)
        self._note_slot()
        await self._slots.ask(self._queued(reserved.pointer_id), reserved.writer)
        return await self.attempt()

    def note_coming(self) -> None:
        """Let those who wait with a load of the table know that this commit is on its way."""
        if self._sender is not None:
            self._held_loads.note_commit(*self._sender)

    def note_end(self, *, has_lost: bool) -> None:
        """Let the next writer load the table."""
        if self._sender is not None:
            writer = None if self._commit is None else self._commit.writer
            self._held_loads.note_end(*self._sender, writer=writer, has_lost=has_lost)

    def _note_slot(self) -> None:
        if self._sender is not None:
            self._held_loads.note_slot(self._sender[0])

    def has_lost_race(self, error: CommitFailed) -> bool:
        """Return whether it was refused because others came first."""
        return self._commit is not None and table_commits.has_lost_race(self._commit, error)

    async def hold(self) -> None:
        """Hold the refusal after a lost race back until the client may try again."""
        if self._slots.is_on:
            await self._slots.bound(self._hold())

    async def _hold(self) -> None:
        commit = self._commit
        assert commit is not None
        assert commit.writer is not None
        known = Before()
        if self._sender is not None:
            known = self._held_loads.known_of(*self._sender)
        self._note_slot()
        try:
            pointer_id, retries, sequence = await self._visit.parts.crew.run(
                lambda: load_retries(self._visit.catalog, commit.identifier)
            )
        except IcetowerError:
            return  # The refusal stands, whatever became of the table meanwhile.
        await self._slots.hold(
            self._queued(pointer_id), commit.writer, retries, sequence, self._is_wanted, known
        )

    def note_landed(self) -> None:
        """Let the queue of the table know."""
        if self._landed_at is None:
            return
        if self._sender is not None:
            self._held_loads.note_pointer(self._sender[0], self._landed_at)
        if self._commit is not None and self._commit.writer is not None:
            self._slots.note_landed(self._queued(self._landed_at), self._commit.writer)

    def _queued(self, pointer_id: int) -> QueuedTable:
        assert self._commit is not None
        return QueuedTable(pointer_id, (self._visit.warehouse_name, self._commit.identifier))

    async def _is_wanted(self) -> bool:
        return not await self._request.is_disconnected()

    def _begin(self, catalog: Catalog) -> Landing[TableMetadata, None]:
        if self._commit is None:
            self._commit = self._parsed()
        return table_commits.begin_commit(catalog, self._commit)

    def _parsed(self) -> TableCommit:
        visit, identifier = self._visit, self._visit.table
        body = parse_commit(visit.body)
        check_same(body.identifier, identifier)
        return TableCommit(
            identifier,
            body.requirements or (),
            body.updates or (),
            asks_first=self._slots.is_on,
            rebasing=rebase_request(visit),
        )

    def _answer(self, landed: Landed[TableMetadata, None]) -> Response:
        if landed.base.found is not None:
            self._landed_at = landed.base.found.id
        return table_answer(self._visit.parts.packed_answers, landed.loaded)

    def _replay(self, recorded: str) -> Response:
        visit = self._visit
        loaded = named.load_landed(visit.catalog, TABLES, visit.table, recorded)
        return table_answer(visit.parts.packed_answers, loaded)


@router.post("/v1/transactions/commit")
def commit_transaction(visit: Visited) -> Response:
    """Commit changes to several tables, all or none."""
    commits = parse_transaction(visit.body).commits(rebase_request(visit))
    return done_once(
        visit, lambda catalog: table_commits.commit_transaction(catalog, commits), is_commit=True
    )
