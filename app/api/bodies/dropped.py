"""JSON of what was dropped and can come back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from app.api.bodies.json_answer import page_json, present
from app.api.bodies.json_body import ExtensionBody
from app.catalog.context.rows import Dropped
from app.catalog.past.dropped import Wanted
from app.engine.model.document import Bool, Long
from app.engine.model.identifiers import Namespace, check_name, check_namespace
from app.errors import InvalidRequest


class NewNameBody(ExtensionBody):
    namespace: tuple[str, ...] | None = None
    name: str | None = None


class DroppedBody(ExtensionBody):
    id: Long | None = None
    namespace: tuple[str, ...] | None = None
    name: str | None = None

    def wanted(self) -> Wanted:
        """Return which thing is meant; raises `InvalidRequest` or `InvalidName`."""
        if (self.id is None) == (self.namespace is None):
            raise InvalidRequest("Invalid body: give either an id, or a namespace with or without a name")
        if self.namespace is None:
            if self.name is not None:
                raise InvalidRequest("Invalid body: name goes with namespace, not with id")
            return Wanted(id=self.id)
        name = None if self.name is None else check_name(self.name, "name")
        return Wanted(namespace=check_namespace(Namespace(self.namespace)), name=name)


class UndropBody(DroppedBody):
    as_: NewNameBody = Field(default_factory=NewNameBody, alias="as")
    create_namespace: Bool = False


def dropped_json(entries: Sequence[Dropped], token: str | None) -> bytes:
    """Return one page of what can come back."""
    return page_json({"dropped": [as_json(entry) for entry in entries]}, token)


def as_json(entry: Dropped) -> dict[str, Any]:
    """Return one thing that was dropped."""
    pointer = entry.pointer
    return {
        "id": entry.id,
        "kind": entry.kind,
        "namespace": list(entry.namespace.levels),
        **present(
            {
                "name": entry.name,
                "uuid": None if pointer is None else pointer.uuid,
                "metadata-location": None if pointer is None else pointer.metadata_location,
                "properties": dict(entry.properties) if pointer is None else None,
            }
        ),
        "dropped-at-ms": entry.dropped_ms,
        "dropped-by": entry.principal,
        "request-id": entry.request_id,
        "until-ms": entry.until_ms,
        "then": "purged" if entry.purge else "forgotten",
    }
