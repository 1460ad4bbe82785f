"""A catalog behind a REST API: one warehouse, with calls about all that is in it."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Literal, Self

import httpx

from app.client.answers import CatalogConfig
from app.client.http.http_calls import HttpCalls, Retries, Tokens
from app.client.namespaces import NamespaceCalls
from app.client.past import PastCalls
from app.client.receipts import RECEIPTS_ENDPOINT, ReceiptCalls
from app.client.table.appends import AppendCalls
from app.client.table.conflicts import ConflictCalls
from app.client.table.health import HealthCalls
from app.client.table.history import HistoryCalls
from app.client.table.maintenance import MaintenanceCalls
from app.client.table.orphans import OrphanCalls
from app.client.table.refs import RefCalls
from app.client.table.registrations import RegistrationCalls
from app.client.table.scans import ScanCalls
from app.client.table.tables import TableCalls
from app.client.table.upkeep import UpkeepCalls
from app.client.table.validation import ValidationCalls
from app.client.tower import TowerCalls
from app.client.views import ViewCalls


class RemoteCatalog:
    """One warehouse of a server. Building it asks the server for its configuration.

    Attributes:
        config: the server's own configuration.
        properties: its defaults, then ours, then its overrides.
    """

    def __init__(
        self,
        uri: str,
        warehouse: str | None = None,
        *,
        retries: Retries | None = None,
        timeout_seconds: float = 60.0,
        transport: httpx.BaseTransport | None = None,
        job: str | None = None,
        headers: Mapping[str, str] | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        """Connect, and read the configuration.

        Args:
            uri: the server's address.
            warehouse: what the server calls a warehouse; its default one unless given.
            retries: how often calls are sent again.
            timeout_seconds: how long an answer is waited for.
            transport: for tests: instead of a connection.
            job: the id of the job of upkeep that makes these calls, if one does.
            headers: sent with every call.
            tokens: where the token of every call comes from, for a server that asks for one.
        """
        self._calls = HttpCalls(
            uri,
            retries=retries,
            timeout_seconds=timeout_seconds,
            transport=transport,
            headers={**(headers or {}), **({} if job is None else {"X-Icetower-Job": job})},
            tokens=tokens,
            warehouse=warehouse,
        )
        asked = {"warehouse": warehouse} if warehouse is not None else {}
        try:
            self.config = self._calls.read(CatalogConfig, "GET", "v1/config", query=asked)
            if RECEIPTS_ENDPOINT not in (self.config.endpoints or ()):
                self._calls.expect_no_receipts()
            # A server may say that it goes on elsewhere, as Nessie does for its branches. Other clients follow, too.
            if elsewhere := self.config.overrides.get("uri"):
                self._calls.go_on_at(elsewhere)
        except BaseException:
            self._calls.close()
            raise
        self.properties = self.config.merged(asked)
        prefix = self.properties.get("prefix")
        root = f"v1/{prefix}" if prefix else "v1"
        self.namespaces = NamespaceCalls(self._calls, root)
        self.tables = TableCalls(self._calls, root)
        self.views = ViewCalls(self._calls, root)
        self.health = HealthCalls(self._calls, root)
        self.history = HistoryCalls(self._calls, root)
        self.appends = AppendCalls(self._calls, root)
        self.orphans = OrphanCalls(self._calls, root)
        self.past = PastCalls(self._calls, root)
        self.receipts = ReceiptCalls(self._calls, root)
        self.refs = RefCalls(self._calls, root)
        self.registrations = RegistrationCalls(self._calls, root)
        self.scans = ScanCalls(self._calls, root)
        self.conflicts = ConflictCalls(self._calls, root)
        self.tower = TowerCalls(self._calls, root)
        self.maintenance = MaintenanceCalls(self._calls, root)
        self.upkeep = UpkeepCalls(self._calls, root)
        self.validation = ValidationCalls(self._calls, root)

    def named(self, kind: Literal["table", "view"]) -> TableCalls | ViewCalls:
        """Return the calls about tables or about views."""
        return self.tables if kind == "table" else self.views

    def close(self) -> None:
        """Close the connections to the server."""
        self._calls.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
