"""Edits of a draft's uuid, format version, location and properties."""

from __future__ import annotations

from collections.abc import Mapping

from app.engine.change import updates as u
from app.engine.change.draft import MetadataDraft
from app.engine.model.format_versions import MAX_FORMAT_VERSION
from app.engine.model.ids import Location, TableUuid
from app.engine.model.schema import check_format_version
from app.engine.model.settings.properties import (
    FORMAT_VERSION,
    PARQUET_COMPRESSION,
    RESERVED,
    leaves_codec_open,
)
from app.engine.properties.lookup import check_properties
from app.errors import InvalidUpdate


def assign_uuid(draft: MetadataDraft, update: u.AssignUuid) -> None:
    """Give the table its uuid, which never changes."""
    if draft.table_uuid is not None and update.uuid.lower() == draft.table_uuid.lower():
        return
    if draft.table_uuid is not None and draft.base is not None:
        raise InvalidUpdate(
            f"Cannot reassign uuid: the table has {draft.table_uuid}, the update says {update.uuid}"
        )
    draft.table_uuid = TableUuid(update.uuid)
    draft.has_changes = True


def upgrade_format_version(draft: MetadataDraft, update: u.UpgradeFormatVersion) -> None:
    """Raise the format version.

    Spec: #appendix-e-format-version-changes
    """
    version = update.format_version
    if version > MAX_FORMAT_VERSION:
        raise InvalidUpdate(
            f"Cannot upgrade table to unsupported format version: v{version} (supported: v{MAX_FORMAT_VERSION})"
        )
    if version < draft.format_version:
        raise InvalidUpdate(f"Cannot downgrade v{draft.format_version} table to v{version}")
    if version == draft.format_version:
        return
    draft.format_version = version
    draft.has_changes = True
    for schema in draft.schemas:
        check_format_version(schema, version)


def set_location(draft: MetadataDraft, update: u.SetLocation) -> None:
    """Set the location of new files, without trailing slashes."""
    location = without_trailing_slash(update.location)
    if location == draft.location:
        return
    draft.location = location
    draft.has_changes = True


def without_trailing_slash(location: str) -> Location:
    """Return the location without trailing slashes; those of `scheme://` stay."""
    # All at once: one after the other, a million of them would take minutes.
    kept = location.rstrip("/")
    dropped = len(location) - len(kept)
    if kept.endswith(":") and dropped > 1:
        return Location(f"{kept}//")
    return Location(kept or location[:1])


def set_properties(draft: MetadataDraft, update: u.SetProperties) -> None:
    """Merge properties; setting equal values counts as a change, as in the reference."""
    if not update.updates:
        return
    changed = dict(update.updates)
    if leaves_codec_open(changed):
        del changed[PARQUET_COMPRESSION]
        draft.properties.pop(PARQUET_COMPRESSION, None)
    check_settable(changed)
    draft.properties.update(changed)
    draft.has_changes = True


def check_settable(properties: Mapping[str, str]) -> None:
    """Check that properties can be set in a table.

    Java's clients show some facts as if they were properties. Stored, they would be wrong, and `format-version` would
    upgrade the table when such a client sets any property.

    Raises:
        InvalidUpdate: one is the name of such a fact, or has a value that makes no sense.
    """
    for name in properties:
        if name in RESERVED:
            how = ": use upgrade-format-version" if name == FORMAT_VERSION else ""
            raise InvalidUpdate(
                f"Table property {name} cannot be set, as it only shows what the table is{how}"
            )
    check_properties(properties)


def remove_properties(draft: MetadataDraft, update: u.RemoveProperties) -> None:
    """Remove properties; missing ones are ignored."""
    if not update.removals:
        return
    for name in update.removals:
        draft.properties.pop(name, None)
    draft.has_changes = True
