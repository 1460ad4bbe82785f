"""The places that a table's properties come from: the table, its namespace, its warehouse."""

from __future__ import annotations

from collections.abc import Mapping

from app.catalog.context.catalog import Catalog
from app.engine.model.identifiers import Namespace
from app.engine.properties.known import Origin
from app.engine.properties.lookup import Layers
from app.errors import NoSuchNamespace


def layers_of(catalog: Catalog, namespace: Namespace, of_table: Mapping[str, str]) -> Layers:
    """Return the properties of a table, its namespace and its warehouse.

    A namespace that is gone has none.

    Raises:
        DatabaseUnavailable: the namespace cannot be looked up.
    """
    try:
        of_namespace = catalog.load_namespace(namespace)
    except NoSuchNamespace:
        of_namespace = {}
    return {
        Origin.TABLE: of_table,
        Origin.NAMESPACE: of_namespace,
        Origin.WAREHOUSE_OVERRIDE: catalog.warehouse.override_properties,
        Origin.WAREHOUSE: catalog.warehouse.default_properties,
    }
