"""A table's properties as they are in force."""

from __future__ import annotations

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.property_layers import layers_of
from app.engine.model.identifiers import TableIdentifier
from app.engine.properties.lookup import EffectiveProperty, effective_properties


def table_properties(catalog: Catalog, identifier: TableIdentifier) -> list[EffectiveProperty]:
    """Return each known property, and each other one that the table has, by name.

    Raises:
        NoSuchTable: no table has this name.
        MetadataFileMissing, CorruptMetadata, FilesUnavailable: the metadata file is gone, or cannot be read.
        DatabaseUnavailable: the database does not answer.
    """
    catalog.permit("table_properties", identifier)
    _, metadata = catalog.read_now(TABLES, identifier)
    return effective_properties(layers_of(catalog, identifier.namespace, metadata.properties))
