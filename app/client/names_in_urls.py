"""Namespaces and names as pieces of a URL."""

from __future__ import annotations

from typing import Literal
from urllib.parse import quote

from app.engine.model.identifiers import LEVEL_SEPARATOR, Namespace, TableIdentifier


def namespace_path(namespace: Namespace) -> str:
    """Return the path of a namespace below the catalog's prefix."""
    return f"namespaces/{_piece(LEVEL_SEPARATOR.join(namespace.levels))}"


def named_path(identifier: TableIdentifier, kind: Literal["tables", "views"]) -> str:
    """Return the path of a table or view below the catalog's prefix."""
    return f"{namespace_path(identifier.namespace)}/{kind}/{_piece(identifier.name)}"


def table_path(identifier: TableIdentifier) -> str:
    """Return the path of a table below the catalog's prefix."""
    return named_path(identifier, "tables")


def snapshot_path(identifier: TableIdentifier, wanted: str) -> str:
    """Return the path of a snapshot, by its id or by a branch or tag, below the catalog's prefix."""
    return f"{table_path(identifier)}/snapshots/{_piece(wanted)}"


def ref_path(identifier: TableIdentifier, name: str) -> str:
    """Return the path of a branch or tag below the catalog's prefix."""
    return f"{table_path(identifier)}/refs/{_piece(name)}"


def warehouse_path(name: str) -> str:
    """Return the path of a warehouse below the management API."""
    return f"warehouses/{_piece(name)}"


def _piece(name: str) -> str:
    # Clients and proxies would resolve a lone "." or ".." as a step in the path.
    return name.replace(".", "%2E") if name in {".", ".."} else quote(name, safe="")
