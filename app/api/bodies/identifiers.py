"""JSON of table and view names: as parts of bodies, renames, listings."""

from __future__ import annotations

from functools import lru_cache
from json.encoder import encode_basestring

import orjson

from app.api.bodies.json_answer import page_json
from app.api.bodies.json_body import Body
from app.engine.model.identifiers import Namespace, TableIdentifier, check_identifier
from app.errors import InvalidRequest

KEPT_PAGES, MOST_NAMES, MOST_CHARACTERS = 8, 2_000, 2**16
"""How many pages are kept as JSON, names on one, and characters of its namespace in all of them."""


class IdentifierBody(Body):
    namespace: tuple[str, ...]
    name: str

    def checked(self) -> TableIdentifier:
        """Return the identifier if its names can be used; raises `InvalidName`."""
        return check_identifier(TableIdentifier(Namespace(self.namespace), self.name))


class RenameBody(Body):
    source: IdentifierBody
    destination: IdentifierBody


def identifiers_json(namespace: Namespace, names: tuple[str, ...], next_page_token: str | None) -> bytes:
    """Return the identifiers of tables or views of one namespace."""
    is_short = len(names) <= MOST_NAMES and len(names) * sum(map(len, namespace.levels)) <= MOST_CHARACTERS
    # Most listings are asked for again as they were.
    make = _kept_identifiers if is_short else _identifiers
    return page_json({"identifiers": orjson.Fragment(make(namespace, names))}, next_page_token)


def _identifiers(namespace: Namespace, names: tuple[str, ...]) -> bytes:
    start = f'{{"namespace":{orjson.dumps(namespace.levels).decode()},"name":'
    # A dict for each name would take longer than all else that a listing needs.
    found = ("}," + start).join(map(encode_basestring, names))
    return (f"[{start}{found}}}]" if names else "[]").encode()


_kept_identifiers = lru_cache(KEPT_PAGES)(_identifiers)


def check_same(in_body: IdentifierBody | None, in_path: TableIdentifier) -> None:
    """Raise `InvalidRequest` if a body names another table or view than its path."""
    if in_body is None:
        return
    if (in_body.namespace, in_body.name) != (in_path.namespace.levels, in_path.name):
        named = ".".join((*in_body.namespace, in_body.name))
        raise InvalidRequest(f"Invalid body: identifier is {named[:600]}, but the path names {in_path}")
