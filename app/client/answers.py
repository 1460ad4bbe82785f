"""What the server answers, as values."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from app.engine.model.identifiers import Namespace, TableIdentifier

JsonObject = dict[str, Any]


class Answer(BaseModel):
    """Parent of all answers; fields that a newer server adds are passed over."""

    model_config = ConfigDict(frozen=True)


class CatalogConfig(Answer):
    """What the server says about itself and wants its clients to use."""

    defaults: dict[str, str | None]
    overrides: dict[str, str | None]
    endpoints: list[str] | None = None
    idempotency_key_lifetime: str | None = Field(None, alias="idempotency-key-lifetime")

    def merged(self, properties: dict[str, str]) -> dict[str, str]:
        """Return what is in force: defaults, under the client's own properties, under overrides."""
        found = {**self.defaults, **properties, **self.overrides}
        return {key: value for key, value in found.items() if value is not None}


class NamespacePage(Answer):
    """One page of a list of namespaces."""

    namespaces: list[list[str]]
    next_page_token: str | None = Field(None, alias="next-page-token")

    def items(self) -> list[Namespace]:
        return [Namespace(tuple(levels)) for levels in self.namespaces]


class NamedBody(Answer):
    """The name of a table or view, as the protocol writes it."""

    namespace: list[str]
    name: str


class IdentifierPage(Answer):
    """One page of a list of tables or views."""

    identifiers: list[NamedBody]
    next_page_token: str | None = Field(None, alias="next-page-token")

    def items(self) -> list[TableIdentifier]:
        return [TableIdentifier(Namespace(tuple(found.namespace)), found.name) for found in self.identifiers]


class LoadedNamespace(Answer):
    """A namespace with its properties."""

    namespace: list[str]
    properties: dict[str, str] | None = None


class PropertyChanges(Answer):
    """What an update of properties did to each key."""

    updated: list[str]
    removed: list[str]
    missing: list[str] | None = None


class LoadedTable(Answer):
    """A table as the server knows it; one that is only staged has no location yet."""

    metadata_location: str | None = Field(None, alias="metadata-location")
    metadata: JsonObject
    config: dict[str, str] = Field(default_factory=dict)


class LoadedView(Answer):
    """A view as the server knows it."""

    metadata_location: str = Field(alias="metadata-location")
    metadata: JsonObject
    config: dict[str, str] = Field(default_factory=dict)
