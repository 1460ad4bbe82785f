"""Deleting metadata files that the metadata log has let go, for tables that ask for it."""

from __future__ import annotations

import logging

from app.catalog.commits.intentions import Base
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import M
from app.catalog.context.locations import is_allowed
from app.engine.model.properties import DELETE_AFTER_COMMIT, bool_property
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.view_metadata import ViewMetadata
from app.errors import IcetowerError

log = logging.getLogger(__name__)


def forget_old_metadata(catalog: Catalog, base: Base[M], after: TableMetadata | ViewMetadata) -> None:
    """Delete metadata files that a landed commit took out of the log; failures are only logged."""
    before = base.metadata
    if base.seen is None or not isinstance(before, TableMetadata) or not isinstance(after, TableMetadata):
        return
    if not bool_property(after.properties, DELETE_AFTER_COMMIT, default=False):
        return
    kept = {entry.metadata_file for entry in after.metadata_log}
    doomed = [entry.metadata_file for entry in before.metadata_log if entry.metadata_file not in kept]
    try:
        # The same files registered under a second name are that table's history too, or its present.
        if not doomed or catalog.server.pointers.others_with_uuid(after.uuid, base.seen.id):
            return
        for location in doomed:
            if is_allowed(catalog, location):
                catalog.files.delete(location)
    except IcetowerError as error:
        log.warning("could not delete old metadata files of %s: %s", after.location, error)
