"""The history of a table: an extension, for curl and people."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.api.bodies.table.history import (
    diff_json,
    files_json,
    filter_in_query,
    history_json,
    snapshot_json,
    snapshots_json,
)
from app.api.dependencies import Visit, Visited
from app.api.responses.answers import json_answer
from app.api.responses.paging import DEFAULT_PAGE_SIZE, PAGING, next_page_token, page_in_query
from app.catalog import diffs, history
from app.catalog.context.listings import Page
from app.engine.expressions.expressions import ALWAYS_TRUE
from app.engine.model.identifiers import LEVEL_SEPARATOR

router = APIRouter()

_TABLE = "/v1/namespaces/{namespace}/tables/{table}"


@router.get(_TABLE + "/snapshots")
def list_snapshots(visit: Visited) -> Response:
    """List the snapshots of a table, newest first."""
    visit.parameters(*PAGING)
    listing = _listing(visit, "snapshots")
    found = history.list_snapshots(visit.catalog, visit.table, _page(visit, listing))
    return json_answer(snapshots_json(found.items, next_page_token(found.next_after, listing)))


@router.get(_TABLE + "/snapshots/{snapshot}")
def load_snapshot(visit: Visited) -> Response:
    """Return one snapshot."""
    visit.parameters()
    return json_answer(
        snapshot_json(history.load_snapshot(visit.catalog, visit.table, visit.text("snapshot")))
    )


@router.get(_TABLE + "/snapshots/{snapshot}/files")
def list_files(visit: Visited) -> Response:
    """List the live files of a snapshot."""
    filter_text = visit.parameters("filter", *PAGING).get("filter", "")
    filter_ = filter_in_query(filter_text) if filter_text else ALWAYS_TRUE
    facts = history.load_snapshot(visit.catalog, visit.table, visit.text("snapshot"))
    # A branch may move between two pages: a token is valid for one snapshot.
    snapshot_id = str(facts.snapshot.snapshot_id)
    listing = _listing(visit, f"files {snapshot_id} {filter_text}")
    page = _page(visit, listing)
    found = history.list_files(visit.catalog, visit.table, snapshot_id, page, filter_)
    return json_answer(files_json(found, next_page_token(found.entries.next_after, listing)))


@router.get(_TABLE + "/history")
def load_history(visit: Visited) -> Response:
    """Return which snapshots were current when, and the events of the pointer."""
    visit.parameters(*PAGING)
    listing = _listing(visit, "history")
    page = _page(visit, listing)
    found = history.load_history(visit.catalog, visit.table, page)
    return json_answer(history_json(found, next_page_token(found.events.next_after, listing)))


@router.get(_TABLE + "/diff")
def load_diff(visit: Visited) -> Response:
    """Return the difference of two states of a table."""
    query = visit.parameters("from", "to", *PAGING)
    before, after = query.get("from"), query.get("to")
    listing = _listing(visit, f"diff {before or ''} {after or ''}")
    page = _page(visit, listing)
    found = diffs.load_diff(visit.catalog, visit.table, before or None, after or None, page)
    token = next_page_token(found.files.next_after, listing)
    return json_answer(diff_json(found, token, is_first=page.after is None))


def _listing(visit: Visit, what: str) -> str:
    identifier = visit.table
    names = LEVEL_SEPARATOR.join((*identifier.namespace.levels, identifier.name))
    return f"{what} {visit.catalog.page_key} {names}"


def _page(visit: Visit, listing: str) -> Page:
    """Return the page that is asked for; always limited, because there may be a million files."""
    page = page_in_query(visit.query, listing)
    return Page(page.after, DEFAULT_PAGE_SIZE if page.limit is None else page.limit)
