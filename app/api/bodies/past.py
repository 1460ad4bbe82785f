"""JSON of the past: tables to be restored, and what is different at two times."""

from __future__ import annotations

from typing import Any

from app.api.bodies.identifiers import IdentifierBody
from app.api.bodies.json_answer import page_json, present
from app.api.bodies.json_body import ExtensionBody
from app.catalog.past.catalog_diff import CatalogDiff, ChangedName, Side
from app.engine.model.document import Bool


class RestoredTableBody(IdentifierBody, ExtensionBody):
    pass


class RestoreBody(ExtensionBody):
    at: str
    tables: tuple[RestoredTableBody, ...]
    dry_run: Bool = False


def catalog_diff_json(found: CatalogDiff, token: str | None) -> bytes:
    """Return one page of what is different."""
    return page_json(
        {
            "from-ms": found.from_ms,
            "to-ms": found.to_ms,
            "namespaces": [
                {"namespace": list(each.namespace.levels), "before": each.before, "after": each.after}
                for each in found.namespaces
            ],
            "names": [_name(each) for each in found.names.items],
        },
        token,
    )


def _name(changed: ChangedName) -> dict[str, Any]:
    return {
        "kind": changed.kind,
        **present({"before": _side(changed.before), "after": _side(changed.after)}),
        "changes": list(changed.changes),
        "is-readable": changed.is_readable,
    }


def _side(side: Side | None) -> dict[str, Any] | None:
    if side is None:
        return None
    return {
        "namespace": list(side.identifier.namespace.levels),
        "name": side.identifier.name,
        "uuid": side.uuid,
        **present(
            {
                "metadata-location": side.metadata_location,
                "snapshot-id": side.snapshot_id,
                "rows": side.rows,
            }
        ),
    }
