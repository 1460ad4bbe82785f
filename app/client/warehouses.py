"""Calls about warehouses: Icetower's own management API, beside the Iceberg protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from pydantic import Field

from app.client.answers import PageAnswer, ServerAnswer
from app.client.http.http_calls import HttpCalls
from app.client.request_parts import given, path_piece

ROOT = "management/v1/warehouses"
SettingKind = Literal["default-properties", "override-properties", "storage"]


class WarehouseAnswer(ServerAnswer):
    """A warehouse; the server masks the secrets among its storage settings."""

    name: str
    root_location: str
    default_properties: dict[str, str] = Field(default_factory=dict)
    override_properties: dict[str, str] = Field(default_factory=dict)
    storage: dict[str, str] = Field(default_factory=dict)
    layout: str = "catalog"


class _WarehousePage(PageAnswer):
    warehouses: list[WarehouseAnswer]


class WarehouseCalls:
    """The warehouses of one server."""

    def __init__(self, calls: HttpCalls) -> None:
        self._calls = calls

    def list(self) -> Iterator[WarehouseAnswer]:
        """Yield all warehouses, by name."""
        for page in self._calls.read_pages(_WarehousePage, ROOT):
            yield from page.warehouses

    def create(
        self,
        name: str,
        root_location: str,
        *,
        default_properties: dict[str, str] | None = None,
        override_properties: dict[str, str] | None = None,
        storage: dict[str, str] | None = None,
        layout: str | None = None,
    ) -> WarehouseAnswer:
        """Create a warehouse.

        Args:
            layout: `hadoop` for one whose tables are the folders below its root; by default `catalog`.
        """
        settings = {
            "layout": layout,
            "default-properties": default_properties,
            "override-properties": override_properties,
            "storage": storage,
        }
        body = {"name": name, "root-location": root_location, **given(settings)}
        return self._calls.read(WarehouseAnswer, "POST", ROOT, body=body)

    def load(self, name: str) -> WarehouseAnswer:
        """Return one warehouse."""
        return self._calls.read(WarehouseAnswer, "GET", self._path(name))

    def update(
        self,
        name: str,
        *,
        updates: Mapping[SettingKind, Mapping[str, str]],
        removals: Mapping[SettingKind, Sequence[str]],
    ) -> WarehouseAnswer:
        """Set and remove single properties and storage settings of a warehouse; all others stay."""
        body = {
            "updates": {kind: dict(pairs) for kind, pairs in updates.items()},
            "removals": {kind: list(names) for kind, names in removals.items()},
        }
        return self._calls.read(WarehouseAnswer, "PATCH", self._path(name), body=body)

    def drop(self, name: str) -> None:
        """Drop an empty warehouse."""
        self._calls.send("DELETE", self._path(name))

    def _path(self, name: str) -> str:
        return f"{ROOT}/{path_piece(name)}"
