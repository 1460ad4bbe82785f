"""What registering a metadata file would do: Icetower's own, beyond the protocol."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from app.client.answers import ServerAnswer
from app.client.http.http_calls import CatalogCalls
from app.client.request_parts import JsonObject, namespace_path
from app.engine.model.identifiers import TableIdentifier

CHECK_ENDPOINT = "POST /v1/{prefix}/namespaces/{namespace}/register/check"
"""As a server's configuration names it."""


class FindingAnswer(ServerAnswer):
    """Something about a metadata file that is to be known before it is registered."""

    code: str
    severity: str
    message: str
    can_be_allowed: bool = True

    @property
    def is_refused(self) -> bool:
        """Whether it should not be registered unless somebody says that this is as it should be."""
        return self.severity == "refused"


class PresentAnswer(ServerAnswer):
    """What has the name now."""

    type: str
    metadata_location: str
    uuid: str = ""
    read_only: bool = False
    id: str | None = None
    """Of this very entry, at each address of its catalog; None from older servers."""


class RegistrationCheckAnswer(ServerAnswer):
    """What registering a metadata file would do."""

    would_register: bool
    metadata_location: str
    found: JsonObject | None = None
    present: PresentAnswer | None = None
    findings: list[FindingAnswer] = Field(default_factory=list)


class RegistrationCalls(CatalogCalls):
    """Checks of metadata files before they are registered in one warehouse."""

    def check(
        self,
        identifier: TableIdentifier,
        metadata_location: str,
        kind: Literal["table", "view"],
    ) -> RegistrationCheckAnswer:
        """Return what registering a metadata file would do; nothing is changed."""
        body = {"name": identifier.name, "metadata-location": metadata_location, "type": kind}
        path = f"{self._root}/{namespace_path(identifier.namespace)}/register/check"
        return self._calls.read(RegistrationCheckAnswer, "POST", path, body=body)
