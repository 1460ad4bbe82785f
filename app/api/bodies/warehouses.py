"""JSON of warehouses: create, change, show with secrets masked."""

from __future__ import annotations

from collections.abc import Mapping

from app.api.bodies.json_body import ExtensionBody
from app.catalog.context.rows import Layout, Warehouse
from app.errors import InvalidSetting
from app.fileio.storage_settings import MAY_CHANGE_BESIDE_KEPT_SECRETS, holds_secret, is_secret_name

MASK = "********"


class CreateWarehouseBody(ExtensionBody):
    name: str
    root_location: str
    default_properties: dict[str, str] | None = None
    override_properties: dict[str, str] | None = None
    storage: dict[str, str] | None = None
    layout: Layout = Layout.CATALOG


class UpdateWarehouseBody(ExtensionBody):
    default_properties: dict[str, str] | None = None
    override_properties: dict[str, str] | None = None
    storage: dict[str, str] | None = None


def warehouse_object(warehouse: Warehouse) -> dict[str, object]:
    """Return a warehouse as it may be shown to anyone."""
    return {
        "name": warehouse.name,
        "root-location": warehouse.root_location,
        "default-properties": _masked(warehouse.default_properties),
        "override-properties": _masked(warehouse.override_properties),
        "storage": _masked(warehouse.storage),
        "layout": warehouse.layout,
    }


def unmasked_storage(given: Mapping[str, str] | None, present: Mapping[str, str]) -> dict[str, str] | None:
    """Return the same for storage settings; secrets that are kept must go where they went.

    Raises:
        InvalidSetting: names a secret that must be given anew, and the setting that changes.
    """
    masked = sorted(key for key, value in (given or {}).items() if value == MASK)
    if given is None or not masked:
        return unmasked(given, present)
    for key in masked:
        if key not in present:
            raise InvalidSetting(
                f"Storage setting {key} is masked, and there is no value that the mask could hide"
            )
    for key in sorted({*given, *present} - MAY_CHANGE_BESIDE_KEPT_SECRETS):
        if given.get(key) not in (MASK, present.get(key)) and not is_secret_name(key):
            raise InvalidSetting(
                f"Storage setting {masked[0]} must be given anew, not masked: {key} changes, which may decide where "
                "the secret is sent"
            )
    return unmasked(given, present)


def unmasked(given: Mapping[str, str] | None, present: Mapping[str, str]) -> dict[str, str] | None:
    """Return what is to replace `present`; a mask that comes back means the secret that it hid."""
    if given is None:
        return None
    return {key: present.get(key, value) if value == MASK else value for key, value in given.items()}


def _masked(properties: Mapping[str, str]) -> dict[str, str]:
    return {key: MASK if holds_secret(key, value) else value for key, value in properties.items()}
