"""The warehouse's own settings: what an export has of them, and the database has not."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from app.catalog.context.catalog import Catalog
from app.catalog.exports.export_files import ExportedSettings
from app.database.warehouses import Warehouse
from app.engine.properties.known import Origin
from app.engine.properties.lookup import flaw_of_inherited
from app.engine.properties.own_properties import OWN_PREFIX

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MissingSettings:
    """What a warehouse has not got; what it has stays, also if the export says otherwise."""

    defaults: Mapping[str, str] = field(default_factory=dict)
    overrides: Mapping[str, str] = field(default_factory=dict)
    defaults_for_clients: Mapping[str, str] = field(default_factory=dict)
    """Only shown: clients receive them, and `uri` or an endpoint leads them elsewhere."""
    overrides_for_clients: Mapping[str, str] = field(default_factory=dict)
    """Likewise."""
    storage: Mapping[str, str] = field(default_factory=dict)
    """Only shown. It decides where secrets are sent, and an export may be planted."""
    left_out: tuple[str, ...] = ()
    """Secrets, which no export has."""

    def __bool__(self) -> bool:
        """Say whether there is something to set."""
        return bool(self.defaults or self.overrides)


def missing_settings(warehouse: Warehouse, exported: ExportedSettings | None) -> MissingSettings:
    """Return what an export has of a warehouse's settings, and the warehouse has not."""
    if exported is None:
        return MissingSettings()
    has = {*warehouse.default_properties, *warehouse.override_properties, *warehouse.storage}
    defaults = _without(exported.defaults, warehouse.default_properties)
    overrides = _without(exported.overrides, warehouse.override_properties)
    return MissingSettings(
        _sensible(defaults),
        _sensible(overrides),
        _for_clients(defaults),
        _for_clients(overrides),
        _without(exported.storage, warehouse.storage),
        tuple(name for name in exported.left_out if name not in has),
    )


def set_missing(catalog: Catalog, missing: MissingSettings) -> None:
    """Give a warehouse the properties that it has not got.

    Raises:
        NoSuchWarehouse: it is gone.
        DatabaseUnavailable, CommitStateUnknown: do it again.
    """

    def completed(present: Warehouse) -> Warehouse:
        return replace(
            present,
            default_properties={**missing.defaults, **present.default_properties},
            override_properties={**missing.overrides, **present.override_properties},
        )

    catalog.server.warehouses.update(catalog.warehouse.name, completed, catalog.author())


def _without(exported: Mapping[str, str], present: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in exported.items() if name not in present}


def _for_clients(properties: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in properties.items() if not name.startswith(OWN_PREFIX)}


def _sensible(properties: Mapping[str, str]) -> dict[str, str]:
    """Return those of the server itself that could be set by a request as well."""
    found = {}
    for name, value in properties.items():
        if not name.startswith(OWN_PREFIX):
            continue
        flaw = flaw_of_inherited({name: value}, Origin.WAREHOUSE)
        if flaw is None:
            found[name] = value
        else:
            log.warning("a property of the export is passed over: %s", flaw)
    return found
