"""JSON of warehouses: create, change, show with secrets masked."""

from __future__ import annotations

from pydantic import Field

from app.api.bodies.json_body import ExtensionBody
from app.catalog.context.rows import Layout, Warehouse
from app.catalog.warehouse_changes import MappingChange, WarehouseChange
from app.fileio.storage_settings import masked


class CreateWarehouseBody(ExtensionBody):
    name: str
    root_location: str
    default_properties: dict[str, str] | None = None
    override_properties: dict[str, str] | None = None
    storage: dict[str, str] | None = None
    layout: Layout = Layout.CATALOG


class _Updates(ExtensionBody):
    default_properties: dict[str, str] = Field(default_factory=dict)
    override_properties: dict[str, str] = Field(default_factory=dict)
    storage: dict[str, str] = Field(default_factory=dict)


class _Removals(ExtensionBody):
    default_properties: tuple[str, ...] = ()
    override_properties: tuple[str, ...] = ()
    storage: tuple[str, ...] = ()


class UpdateWarehouseBody(ExtensionBody):
    default_properties: dict[str, str] | None = None
    override_properties: dict[str, str] | None = None
    storage: dict[str, str] | None = None
    updates: _Updates = _Updates()
    removals: _Removals = _Removals()

    def change(self) -> WarehouseChange:
        """Return what is to become of the warehouse."""
        return WarehouseChange(
            MappingChange(
                self.default_properties, self.updates.default_properties, self.removals.default_properties
            ),
            MappingChange(
                self.override_properties, self.updates.override_properties, self.removals.override_properties
            ),
            MappingChange(self.storage, self.updates.storage, self.removals.storage),
        )


def warehouse_object(warehouse: Warehouse) -> dict[str, object]:
    """Return a warehouse as it may be shown to anyone."""
    return {
        "name": warehouse.name,
        "root-location": warehouse.root_location,
        "default-properties": masked(warehouse.default_properties),
        "override-properties": masked(warehouse.override_properties),
        "storage": masked(warehouse.storage),
        "layout": warehouse.layout,
    }
