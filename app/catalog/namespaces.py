"""Namespaces: created, listed, described, dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.catalog.context import Call, Catalog, Listing, Page, page_of, read_limit
from app.catalog.locations import check_location
from app.database.namespaces import PropertyChanges
from app.database.warehouses import Warehouse
from app.engine.model.identifiers import Namespace, check_namespace
from app.errors import AmbiguousProperties, NoSuchNamespace

LOCATION = "location"
"""The namespace property that says where its tables go."""


def list_namespaces(
    catalog: Catalog, warehouse: Warehouse, parent: Namespace | None, page: Page
) -> Listing[Namespace]:
    """Return the direct children of a namespace, or the outermost namespaces, in the order of their names.

    Raises:
        NoSuchNamespace: the parent is not there.
    """
    names = catalog.namespaces.list_children(warehouse.id, parent, page.after, read_limit(page))
    cut = page_of(names, page)
    above = parent.levels if parent else ()
    return Listing([Namespace((*above, name)) for name in cut.items], cut.next_after)


def create_namespace(
    catalog: Catalog, call: Call, warehouse: Warehouse, namespace: Namespace, properties: Mapping[str, str]
) -> None:
    """Create a namespace, and those above it that are missing.

    Raises:
        InvalidName: a level cannot be used as a name.
        InvalidLocation: its `location` is outside the warehouse.
        NamespaceExists: the name is taken.
        CommitStateUnknown: the database did not answer.
    """
    check_namespace(namespace)
    if LOCATION in properties:
        check_location(catalog, warehouse, properties[LOCATION], "namespace location")
    catalog.namespaces.create(warehouse.id, namespace, dict(properties), catalog.now_ms(), call.claim)


def load_namespace(catalog: Catalog, warehouse: Warehouse, namespace: Namespace) -> dict[str, str]:
    """Return a namespace's properties.

    Raises:
        NoSuchNamespace: it is not there.
    """
    found = catalog.namespaces.find(warehouse.id, namespace)
    if found is None:
        raise NoSuchNamespace(namespace)
    return found


def drop_namespace(catalog: Catalog, call: Call, warehouse: Warehouse, namespace: Namespace) -> None:
    """Drop an empty namespace.

    Raises:
        NoSuchNamespace: it is not there.
        NamespaceNotEmpty: it holds tables, views or namespaces.
        CommitStateUnknown: the database did not answer.
    """
    catalog.namespaces.drop(warehouse.id, namespace, call.claim)


def update_namespace_properties(
    catalog: Catalog,
    call: Call,
    warehouse: Warehouse,
    namespace: Namespace,
    removals: Sequence[str],
    updates: Mapping[str, str],
) -> PropertyChanges:
    """Set and remove properties of a namespace.

    Raises:
        AmbiguousProperties: a key is both set and removed.
        InvalidLocation: a `location` outside the warehouse.
        NoSuchNamespace: it is not there.
        CommitStateUnknown: the database did not answer.
    """
    both = sorted(set(removals) & updates.keys())
    if both:
        raise AmbiguousProperties(both)
    if LOCATION in updates:
        check_location(catalog, warehouse, updates[LOCATION], "namespace location")
    return catalog.namespaces.update_properties(
        warehouse.id, namespace, list(removals), dict(updates), call.claim
    )
