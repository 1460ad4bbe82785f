"""Parts of requests, as the protocol writes them: paths, and pieces of bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import quote

from app.engine.model.identifiers import LEVEL_SEPARATOR, Namespace, TableIdentifier

JsonObject = dict[str, Any]


def identifier_body(identifier: TableIdentifier) -> JsonObject:
    """Return the name of a table or view."""
    return {"namespace": [*identifier.namespace.levels], "name": identifier.name}


def change_body(
    identifier: TableIdentifier, updates: Sequence[JsonObject], requirements: Sequence[JsonObject]
) -> JsonObject:
    """Return a commit to one table or view."""
    return {
        "identifier": identifier_body(identifier),
        "requirements": [*requirements],
        "updates": [*updates],
    }


def given(fields: Mapping[str, Any]) -> JsonObject:
    """Return the fields that have a value."""
    return {key: value for key, value in fields.items() if value is not None}


def namespace_path(namespace: Namespace) -> str:
    """Return the path of a namespace below the catalog's prefix."""
    return f"namespaces/{path_piece(LEVEL_SEPARATOR.join(namespace.levels))}"


def named_path(identifier: TableIdentifier, kind: Literal["tables", "views"]) -> str:
    """Return the path of a table or view below the catalog's prefix."""
    return f"{namespace_path(identifier.namespace)}/{kind}/{path_piece(identifier.name)}"


def path_piece(name: str) -> str:
    """Return a name as one step of a path."""
    # Clients and proxies would resolve a lone "." or ".." as a step in the path.
    # Of a name that is no text the server says that it is none.
    return name.replace(".", "%2E") if name in {".", ".."} else quote(name, "", errors="surrogatepass")
