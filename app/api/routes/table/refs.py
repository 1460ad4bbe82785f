"""Branches and tags of a table: an extension, for curl and people."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter
from starlette.responses import Response

from app.api.bodies.table.refs import ChangeRefBody, receipt_json, ref_json, refs_json
from app.api.dependencies import Visit, Visited
from app.api.idempotency import run_once
from app.api.responses.answers import json_answer
from app.catalog import refs
from app.catalog.context.catalog import Catalog
from app.catalog.refs import Receipt
from app.engine.branches.ref_changes import Unchecked
from app.engine.model.document import MAX_LONG
from app.engine.model.ids import SnapshotId
from app.errors import InvalidRequest

router = APIRouter()

_REFS = "/v1/namespaces/{namespace}/tables/{table}/refs"


@router.get(_REFS)
def list_refs(visit: Visited) -> Response:
    """List the branches and tags of a table."""
    visit.parameters()
    return json_answer(refs_json(refs.list_refs(visit.catalog, visit.table)))


@router.get(_REFS + "/{ref}")
def load_ref(visit: Visited) -> Response:
    """Return one branch or tag."""
    visit.parameters()
    return json_answer(ref_json(refs.load_ref(visit.catalog, visit.table, visit.text("ref"))))


@router.put(_REFS + "/{ref}")
def change_ref(visit: Visited) -> Response:
    """Make or move a branch or tag, or change its retention."""
    identifier, name = visit.table, visit.text("ref")
    change = visit.extension_body(ChangeRefBody).change_of(name)
    return _receipt_once(visit, name, lambda catalog: refs.change_ref(catalog, identifier, change))


@router.delete(_REFS + "/{ref}")
def remove_ref(visit: Visited) -> Response:
    """Remove a branch or tag."""
    identifier, name = visit.table, visit.text("ref")
    expected = _expected(visit)
    return _receipt_once(visit, name, lambda catalog: refs.remove_ref(catalog, identifier, name, expected))


def _receipt_once(visit: Visit, name: str, mutate: Callable[[Catalog], Receipt]) -> Response:
    def replay(recorded: str) -> Response:
        return json_answer(receipt_json(refs.load_receipt(visit.catalog, visit.table, name, recorded)))

    return run_once(visit, lambda catalog: json_answer(receipt_json(mutate(catalog))), replay)


def _expected(visit: Visit) -> SnapshotId | Unchecked:
    text = visit.parameters("expected-snapshot-id").get("expected-snapshot-id")
    if text is None:
        return Unchecked.UNCHECKED
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19 or int(digits) > MAX_LONG:
        raise InvalidRequest(f"Invalid expected-snapshot-id {text[:100]!r}: it must be a snapshot id")
    return SnapshotId(int(text))
