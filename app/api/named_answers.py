"""Answers that tables and views have in common."""

from __future__ import annotations

from collections.abc import Callable

import orjson
from starlette.responses import Response

from app.api.bodies.identifiers import RenameBody, identifiers_json
from app.api.bodies.json_body import parse_body
from app.api.dependencies import Visit
from app.api.idempotency import done_once, run_once
from app.api.names_in_paths import decode_piece, true_or_false
from app.api.responses.answers import json_answer
from app.api.responses.paging import next_page_token, page_in_query
from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import Kind, Loaded, M
from app.catalog.context.listings import Listing
from app.catalog.context.recorded_places import RecordedPlace
from app.engine.model.identifiers import LEVEL_SEPARATOR, Namespace, TableIdentifier
from app.engine.model.ids import Location


def names_answer(visit: Visit, kind: Kind[M]) -> Response:
    """List the tables or views of a namespace."""
    catalog, namespace = visit.catalog, visit.namespace
    listing = _listing(catalog, kind, namespace)
    found = named.list_names(catalog, kind, namespace, page_in_query(visit.query, listing))
    return _names_answer(found, namespace, listing)


async def shared_names_answer(visit: Visit, kind: Kind[M]) -> Response:
    """Do the same; clients that ask for the same list at a time share what is read."""
    catalog = await visit.load_catalog()
    if not catalog.has_rows or catalog.as_of_ms is not None or visit.has_plus:
        return await visit.in_thread(lambda: names_answer(visit, kind))
    namespace = visit.namespace
    listing = _listing(catalog, kind, namespace)
    page = page_in_query(visit.query, listing)
    found = await visit.parts.name_lists.list_names(catalog, kind, namespace, page, visit.in_thread)
    return _names_answer(found, namespace, listing)


def _listing(catalog: Catalog, kind: Kind[M], namespace: Namespace) -> str:
    return f"{kind}s {catalog.page_key} {LEVEL_SEPARATOR.join(namespace.levels)}"


def _names_answer(found: Listing[str], namespace: Namespace, listing: str) -> Response:
    token = next_page_token(found.next_after, listing)
    return json_answer(identifiers_json(namespace, tuple(found.items), token))


def loaded_once(
    visit: Visit,
    kind: Kind[M],
    identifier: TableIdentifier,
    mutate: Callable[[Catalog], Loaded[M]],
    answer: Callable[[Loaded[M]], Response],
    load: Callable[[Catalog, Kind[M], TableIdentifier, str], Loaded[M]] = named.load_recorded,
) -> Response:
    """Run a mutation once, and answer with the table or view as the mutation left it."""

    def replay(recorded: str) -> Response:
        return answer(load(visit.catalog, kind, identifier, recorded))

    return run_once(visit, lambda catalog: answer(mutate(catalog)), replay)


def unregistered_answer(
    visit: Visit, kind: Kind[M], identifier: TableIdentifier, answer: Callable[[Loaded[M]], Response]
) -> Response:
    """Unregister a table or view once, where the caller expects it."""
    text = visit.header(b"x-icetower-expected-metadata-location")
    expected = None if text is None else decode_piece(text.decode("latin-1"))
    unread = visit.header(b"x-icetower-unread")
    if unread is not None and true_or_false("X-Icetower-Unread", unread.decode("latin-1")):
        return run_once(
            visit,
            lambda catalog: _place_answer(named.unregister_unread(catalog, kind, identifier, expected)),
            lambda recorded: _place_answer(RecordedPlace.of_text(recorded).location),
        )
    # Whatever has the name by now, what was let go is what the first request was about.
    return run_once(
        visit,
        lambda catalog: answer(named.unregister(catalog, kind, identifier, expected)),
        lambda recorded: answer(named.load_as_recorded(visit.catalog, kind, identifier, recorded)),
    )


def _place_answer(location: Location) -> Response:
    return json_answer(orjson.dumps({"metadata-location": location}))


def rename_answer(visit: Visit, kind: Kind[M]) -> Response:
    """Give a table or view another name."""
    body = parse_body(RenameBody, visit.body)
    source, destination = body.source.checked(), body.destination.checked()
    return done_once(visit, lambda catalog: named.rename(catalog, kind, source, destination))
