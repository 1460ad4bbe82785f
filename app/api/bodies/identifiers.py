"""JSON of table and view names: as parts of bodies, renames, listings."""

from __future__ import annotations

from collections.abc import Sequence
from json.encoder import encode_basestring

import orjson

from app.api.bodies.json_answer import page_json
from app.api.bodies.json_body import Body
from app.engine.model.identifiers import Namespace, TableIdentifier, check_identifier
from app.errors import InvalidRequest


class IdentifierBody(Body):
    namespace: tuple[str, ...]
    name: str

    def checked(self) -> TableIdentifier:
        """Return the identifier if its names can be used; raises `InvalidName`."""
        return check_identifier(TableIdentifier(Namespace(self.namespace), self.name))


class RenameBody(Body):
    source: IdentifierBody
    destination: IdentifierBody


def identifiers_json(namespace: Namespace, names: Sequence[str], next_page_token: str | None) -> bytes:
    """Return the identifiers of tables or views of one namespace."""
    start = f'{{"namespace":{orjson.dumps(namespace.levels).decode()},"name":'
    # A dict for each name would take longer than all else that a listing needs.
    found = ("}," + start).join(map(encode_basestring, names))
    identifiers = f"[{start}{found}}}]" if names else "[]"
    return page_json({"identifiers": orjson.Fragment(identifiers)}, next_page_token)


def check_same(in_body: IdentifierBody | None, in_path: TableIdentifier) -> None:
    """Raise `InvalidRequest` if a body names another table or view than its path."""
    if in_body is None:
        return
    if (in_body.namespace, in_body.name) != (in_path.namespace.levels, in_path.name):
        named = ".".join((*in_body.namespace, in_body.name))
        raise InvalidRequest(f"Invalid body: identifier is {named[:600]}, but the path names {in_path}")
