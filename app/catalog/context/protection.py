"""Protection: what must not be dropped, purged or renamed."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import Kind, M
from app.catalog.context.property_layers import layers_of
from app.database.pointers.pointer import Pointer
from app.database.pointers.recoverable import PURGE_NOW, Recovery
from app.database.warehouses import Warehouse
from app.engine.model.identifiers import Namespace
from app.engine.model.settings.properties import keeping_switch
from app.engine.properties.known import Origin
from app.engine.properties.lookup import Layers, effective_property
from app.engine.properties.own_properties import PROTECTED, UNDROP_KEEP, UNDROP_PURGE_WAITS
from app.engine.upkeep.command_lines import on_the_command_line
from app.errors import CorruptMetadata, MetadataFileMissing
from app.recoveries import Protected

log = logging.getLogger(__name__)


def check_unprotected(catalog: Catalog, kind: Kind[M], pointer: Pointer, action: str) -> Mapping[str, str]:
    """Check that a table or view is not protected, and return its properties.

    The nearest place decides: the table, its namespace, its warehouse. Without readable metadata the table itself
    says nothing: it can still be dropped.

    Args:
        catalog: the warehouse.
        kind: tables or views.
        pointer: the table's or view's.
        action: what is to be done to it, such as "drop".

    Raises:
        Protected: it must not.
        FilesUnavailable: the store does not answer.
    """
    try:
        properties: Mapping[str, str] = catalog.read(kind, pointer).properties
    except (MetadataFileMissing, CorruptMetadata) as error:
        log.warning("%s %s without readable metadata: %s", action, pointer.identifier, error)
        properties = {}
    layers = layers_of(catalog, pointer.identifier.namespace, properties)
    _check(layers, action, f"{kind} {pointer.identifier}", catalog.warehouse, pointer.identifier.namespace)
    return properties


def check_namespace_unprotected(
    catalog: Catalog, namespace: Namespace, properties: Mapping[str, str], action: str = "drop"
) -> None:
    """Check that a namespace may be dropped; the nearest place decides: it, or its warehouse.

    Args:
        catalog: the warehouse.
        namespace: which one.
        properties: those that it has.
        action: what is to be done to it.

    Raises:
        Protected: it must not.
    """
    layers = {Origin.NAMESPACE: properties, **_layers_of_warehouse(catalog.warehouse)}
    _check(layers, action, f"namespace {namespace}", catalog.warehouse, namespace)


def check_warehouse_unprotected(warehouse: Warehouse) -> None:
    """Check that a warehouse may be dropped.

    Raises:
        Protected: it must not.
    """
    _check(_layers_of_warehouse(warehouse), "drop", f"warehouse {warehouse.name}", warehouse, None)


def recovery_of(warehouse: Warehouse, *, purge: bool) -> Recovery:
    """Return for how long what is dropped now can come back, and what happens then."""
    layers = _layers_of_warehouse(warehouse)
    waits = keeping_switch(effective_property(layers, UNDROP_PURGE_WAITS).value)
    if purge and not waits:
        return PURGE_NOW
    keeping = effective_property(layers, UNDROP_KEEP)
    # What was set before it was checked may make no sense: then the default holds, for nothing may be lost.
    kept = keeping.value if keeping.flaw is None or keeping.known is None else keeping.known.default
    return Recovery(int(kept or 0), purge=purge)


def _layers_of_warehouse(warehouse: Warehouse) -> Layers:
    return {
        Origin.WAREHOUSE_OVERRIDE: warehouse.override_properties,
        Origin.WAREHOUSE: warehouse.default_properties,
    }


def _check(layers: Layers, action: str, what: str, warehouse: Warehouse, namespace: Namespace | None) -> None:
    found = effective_property(layers, PROTECTED)
    if not keeping_switch(found.value):
        return
    off, of_warehouse = f"{PROTECTED}=false", f"warehouse {warehouse.name}"
    change = f"icetower warehouse update {warehouse.name}"
    on_line = "" if namespace is None else on_the_command_line(namespace, warehouse.name)
    places = {
        Origin.TABLE: ("it", "Spark: ALTER … SET TBLPROPERTIES"),
        Origin.NAMESPACE: (f"namespace {namespace}", f"icetower namespace set {on_line} {off}"),
        Origin.WAREHOUSE_OVERRIDE: (
            f"{of_warehouse}, which overrides its default",
            f"{change} --override {off}",
        ),
    }
    place, how = places.get(found.origin, (of_warehouse, f"{change} --default {off}"))
    raise Protected(what, action, place, how)
