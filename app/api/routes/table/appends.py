"""Appending files by reference: an extension, for every program that can write Parquet."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies.table.appends import AppendFilesBody
from app.api.dependencies import Visit, open_visit
from app.api.landings import land_once
from app.api.responses.answers import json_answer
from app.catalog import appends
from app.catalog.commits.appends import Appended
from app.catalog.commits.intentions import Landed, Reserved
from app.catalog.commits.landing import Landing
from app.catalog.context.catalog import Catalog
from app.catalog.slots.landing_slots import QueuedTable


async def append_files(request: Request) -> Response:
    """Append data files that are in storage already; past FastAPI's dependencies."""
    visit = await open_visit(request)
    slots = visit.parts.slots
    try:
        return await _appended(visit, visit.commit_id if slots.is_on else None)
    except Reserved as reserved:
        # As other commits that add a snapshot: a slow writer would never land among fast appends.
        identifier = await visit.in_thread(lambda: visit.table)
        table = QueuedTable(reserved.pointer_id, (visit.warehouse_name, identifier))
        await slots.ask(table, reserved.writer)
        answer = await _appended(visit, None)
        slots.note_landed(table, reserved.writer)
        return answer


async def _appended(visit: Visit, asks_as: str | None) -> Response:
    def begin(catalog: Catalog) -> Landing[Any, Appended]:
        body = visit.extension_body(AppendFilesBody)
        return appends.begin_append(catalog, visit.table, body.request(), asks_as)

    return await land_once(visit, begin, _answer, lambda recorded: json_answer(recorded.encode()))


def _answer(landed: Landed[Any, Appended]) -> Response:
    assert landed.detail is not None
    return json_answer(orjson.dumps(landed.detail.facts(landed.loaded.location)))
