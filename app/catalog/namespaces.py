"""Namespaces: created, listed, described, dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.catalog.context.catalog import Catalog, new_in_warehouse
from app.catalog.context.listings import Listing, Page, page_of
from app.catalog.context.places.locations import LOCATION, check_new_location, location_of_namespace
from app.catalog.context.protection import check_namespace_unprotected, recovery_of
from app.database.namespaces import PropertyChanges
from app.engine.model.identifiers import Namespace, check_namespace
from app.engine.properties.known import Origin
from app.engine.properties.lookup import flaw_of_inherited
from app.errors import AmbiguousProperties, InvalidRequest


def list_namespaces(catalog: Catalog, parent: Namespace | None, page: Page) -> Listing[Namespace]:
    """Return the direct children of a namespace, or the outermost namespaces, by name.

    Raises:
        NoSuchNamespace: the parent is not there.
    """
    catalog.permit("list_namespaces", *([parent] if parent else []))
    names = catalog.shown_namespaces.list_children(catalog.warehouse.id, parent, page.after, page.read_limit)
    cut = page_of(names, page)
    above = parent.levels if parent else ()
    return Listing([Namespace((*above, name)) for name in cut.items], cut.next_after)


def create_namespace(catalog: Catalog, namespace: Namespace, properties: Mapping[str, str]) -> None:
    """Create a namespace, and those above it that are missing.

    Raises:
        InvalidName: a level cannot be used as a name.
        InvalidLocation: its `location` is outside the warehouse.
        InvalidRequest: a property that its tables inherit makes no sense.
        NamespaceExists: the name is taken.
        NoSuchWarehouse: the warehouse is gone since the request came.
        CommitStateUnknown: the database did not answer.
    """
    catalog.permit("create_namespace", namespace)
    check_namespace(namespace)
    _check_properties(catalog, properties)
    with new_in_warehouse(catalog):
        catalog.namespaces.create(
            catalog.warehouse.id, namespace, dict(properties), catalog.author(), catalog.caller.claim
        )


def load_namespace(catalog: Catalog, namespace: Namespace) -> dict[str, str]:
    """Return a namespace's properties; where it has no `location`, the one that new tables get.

    Other catalogs do so too, and Trino creates no table in a namespace without.

    Raises:
        NoSuchNamespace: it is not there.
    """
    catalog.permit("load_namespace", namespace)
    properties = catalog.load_namespace(namespace)
    return properties | {LOCATION: location_of_namespace(catalog, namespace, properties)}


def drop_namespace(catalog: Catalog, namespace: Namespace) -> None:
    """Drop an empty namespace.

    Raises:
        NoSuchNamespace: it is not there.
        Protected: it is protected.
        NamespaceNotEmpty: it holds tables, views or namespaces.
        CommitStateUnknown: the database did not answer.
    """
    catalog.permit("drop_namespace", namespace)
    catalog.namespaces.drop(
        catalog.warehouse.id,
        namespace,
        catalog.author(),
        catalog.caller.claim,
        recovery=recovery_of(catalog.warehouse, purge=False),
        check=lambda properties: check_namespace_unprotected(catalog, namespace, properties),
    )


def update_namespace_properties(
    catalog: Catalog,
    namespace: Namespace,
    removals: Sequence[str],
    updates: Mapping[str, str],
) -> PropertyChanges:
    """Set and remove properties of a namespace.

    Raises:
        AmbiguousProperties: a key is both set and removed.
        InvalidLocation: a `location` outside the warehouse.
        InvalidRequest: a property that its tables inherit makes no sense.
        NoSuchNamespace: it is not there.
        CommitStateUnknown: the database did not answer.
    """
    catalog.permit("update_namespace_properties", namespace)
    both = sorted(set(removals) & updates.keys())
    if both:
        raise AmbiguousProperties(both)
    _check_properties(catalog, updates)
    return catalog.namespaces.update_properties(
        catalog.warehouse.id, namespace, list(removals), dict(updates), catalog.author(), catalog.caller.claim
    )


def _check_properties(catalog: Catalog, properties: Mapping[str, str]) -> None:
    if LOCATION in properties:
        check_new_location(catalog, properties[LOCATION], "namespace location")
    flaw = flaw_of_inherited(properties, Origin.NAMESPACE)
    if flaw is not None:
        raise InvalidRequest(f"Namespace property {flaw}")
