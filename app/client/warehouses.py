"""Calls about warehouses: Icetower's own management API, beside the Iceberg protocol."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from app.client.answers import ServerAnswer
from app.client.http_calls import HttpCalls
from app.client.request_parts import JsonObject, warehouse_path

ROOT = "management/v1"


class WarehouseAnswer(ServerAnswer):
    """A warehouse; the server masks the secrets among its storage settings."""

    name: str
    root_location: str
    default_properties: dict[str, str] = Field(default_factory=dict)
    override_properties: dict[str, str] = Field(default_factory=dict)
    storage: dict[str, str] = Field(default_factory=dict)


class _WarehouseList(ServerAnswer):
    warehouses: list[WarehouseAnswer]


class WarehouseCalls:
    """The warehouses of one server."""

    def __init__(self, calls: HttpCalls) -> None:
        self._calls = calls

    def list(self) -> list[WarehouseAnswer]:
        """Return all warehouses."""
        return self._calls.read(_WarehouseList, "GET", f"{ROOT}/warehouses").warehouses

    def create(
        self,
        name: str,
        root_location: str,
        *,
        default_properties: Mapping[str, str] | None = None,
        override_properties: Mapping[str, str] | None = None,
        storage: Mapping[str, str] | None = None,
    ) -> WarehouseAnswer:
        """Create a warehouse."""
        body = {
            "name": name,
            "root-location": root_location,
            **_settings(default_properties, override_properties, storage),
        }
        return self._calls.read(WarehouseAnswer, "POST", f"{ROOT}/warehouses", body=body)

    def load(self, name: str) -> WarehouseAnswer:
        """Return one warehouse."""
        return self._calls.read(WarehouseAnswer, "GET", f"{ROOT}/{warehouse_path(name)}")

    def update(
        self,
        name: str,
        *,
        default_properties: Mapping[str, str] | None = None,
        override_properties: Mapping[str, str] | None = None,
        storage: Mapping[str, str] | None = None,
    ) -> WarehouseAnswer:
        """Replace those of a warehouse's mappings that are given."""
        body = _settings(default_properties, override_properties, storage)
        return self._calls.read(WarehouseAnswer, "PATCH", f"{ROOT}/{warehouse_path(name)}", body=body)

    def drop(self, name: str) -> None:
        """Drop an empty warehouse."""
        self._calls.send("DELETE", f"{ROOT}/{warehouse_path(name)}")


def _settings(
    default_properties: Mapping[str, str] | None,
    override_properties: Mapping[str, str] | None,
    storage: Mapping[str, str] | None,
) -> JsonObject:
    mappings = {
        "default-properties": default_properties,
        "override-properties": override_properties,
        "storage": storage,
    }
    return {key: dict(value) for key, value in mappings.items() if value is not None}
