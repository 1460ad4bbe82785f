"""What registering a metadata file would bring, and what speaks against it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import Kind, M
from app.catalog.context.places.locations import check_location, check_locations, is_allowed
from app.catalog.context.places.table_places import claimed_places, with_real_folders
from app.catalog.context.rows import Pointer
from app.catalog.manifests.table_manifests import TableManifests
from app.catalog.named import check_registrable
from app.database.deletions.neighbours import Neighbour
from app.engine.model.identifiers import TableIdentifier, check_identifier
from app.engine.model.ids import Location
from app.engine.model.settings.properties import allows_deletes, bool_property
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.engine.model.view_metadata import ViewMetadata
from app.engine.properties.own_properties import MOVED_TO
from app.errors import (
    CorruptMetadata,
    FileMissing,
    InvalidLocation,
    InvalidMetadata,
    MetadataFileMissing,
    NoSuchNamespace,
)
from app.fileio.locations import LONGEST_LOCATION, flaw_of, folder_name, folders_of, scheme_of

SHOWN_NEIGHBOURS: Final = 20
_SOME_MANIFESTS: Final = 4
"""At the beginning and at the end of the list."""
_SNAPSHOT_TABLE: Final = "snapshot"
"""Spark's procedure of that name sets it on tables whose data files belong to another one."""
_OF_FILE_SYSTEM_TABLE = re.compile(r"/v\d+(\.gz)?\.metadata\.json(\.gz)?$", re.ASCII)


class RegistrationSeverity(StrEnum):
    """What a finding means for the registration."""

    REFUSED = "refused"
    """It should not be registered unless somebody says that this is as it should be."""
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class RegistrationFinding:
    """Something about a metadata file that is to be known before it is registered."""

    code: str
    severity: RegistrationSeverity
    message: str
    can_be_allowed: bool = True
    """False if the registration itself is refused for it, or would be of no use."""


@dataclass(frozen=True, slots=True)
class RegistrationCheck(Generic[M]):
    """What registering a metadata file would do."""

    identifier: TableIdentifier
    kind: Kind[M]
    location: Location
    metadata: M | None
    """None if the file cannot be read."""
    present: Pointer | None
    """What has the name now."""
    findings: tuple[RegistrationFinding, ...]

    @property
    def would_register(self) -> bool:
        """Whether nothing speaks against it."""
        return all(finding.severity is not RegistrationSeverity.REFUSED for finding in self.findings)


def check_registration(
    catalog: Catalog, kind: Kind[M], identifier: TableIdentifier, location: str, *, overwrite: bool = False
) -> RegistrationCheck[M]:
    """Return what registering a metadata file would do; nothing is changed.

    Raises:
        InvalidName: the name cannot be used.
        InvalidLocation: the location is longer than any.
        FilesUnavailable: the store does not answer.
    """
    catalog.permit("check_registration", identifier)
    check_registrable(catalog)
    check_identifier(identifier)
    if len(location) > LONGEST_LOCATION:
        # Not a finding: it would be sent back.
        raise InvalidLocation(f"Invalid metadata-location: {flaw_of(location)}")
    findings: list[RegistrationFinding] = []
    present = catalog.find(identifier)
    if present is not None and not (overwrite and present.kind is kind.of_pointer):
        findings.append(_refused("name-taken", f"{identifier} is a {present.kind.value} already", final=True))
    try:
        catalog.load_namespace(identifier.namespace)
    except NoSuchNamespace:
        findings.append(_warning("namespace-missing", f"There is no namespace {identifier.namespace} yet"))
    metadata, reason = _read(catalog, kind, Location(location))
    findings += [reason] if reason is not None else []
    if metadata is not None:
        findings += _of_places(catalog, identifier, metadata, location, present)
        findings += _of_names(catalog, metadata, present)
        findings += _of_metadata(catalog, metadata, location)
    return RegistrationCheck(identifier, kind, Location(location), metadata, present, tuple(findings))


def _refused(code: str, message: str, *, final: bool = False) -> RegistrationFinding:
    return RegistrationFinding(code, RegistrationSeverity.REFUSED, message, can_be_allowed=not final)


def _warning(code: str, message: str) -> RegistrationFinding:
    return RegistrationFinding(code, RegistrationSeverity.WARNING, message)


def _read(catalog: Catalog, kind: Kind[M], location: Location) -> tuple[M | None, RegistrationFinding | None]:
    try:
        check_location(catalog, location, "metadata-location")
        return catalog.read_file(kind, location), None
    except InvalidLocation as error:
        return None, _refused("outside-warehouse", f"{error}. {_OTHER_SPELLING}", final=True)
    except MetadataFileMissing as error:
        return None, _refused("metadata-missing", str(error), final=True)
    except InvalidMetadata as error:
        return None, _refused("metadata-unreadable", f"{location}: {error}", final=True)


_OTHER_SPELLING: Final = (
    "If the same files have another spelling here, name that; if their paths have to change, "
    "copy them with Spark's rewrite_table_path first"
)


def _of_places(
    catalog: Catalog, identifier: TableIdentifier, metadata: M, location: str, present: Pointer | None
) -> Iterator[RegistrationFinding]:
    """Yield what is wrong with the folders in which a table or view says that its files are."""
    try:
        check_locations(catalog, identifier, metadata, is_there=True)
    except InvalidLocation as error:
        yield _refused("outside-warehouse", f"{error}. {_OTHER_SPELLING}", final=True)
        return
    places = with_real_folders(claimed_places(metadata, location))
    root = folder_name(catalog.warehouse.root_location)
    if any(root.startswith(place) for place in places):
        yield _refused("location-overlaps", f"{metadata.location} is the whole warehouse, or around it")
    around = {folder for place in places for folder in folders_of(place + "_")}
    found = catalog.server.neighbours.in_or_around(
        sorted(places), sorted(around), present.id if present else None, SHOWN_NEIGHBOURS
    )
    for other in found:
        if metadata.uuid and other.uuid == metadata.uuid:
            continue  # `same-uuid` says it already
        if other.place in places:
            yield _refused("location-shared", f"{other.place} is a folder of {other} too")
        else:
            yield _refused("location-overlaps", f"{other.place} is a folder of {other}, and the two overlap")


def _of_names(catalog: Catalog, metadata: M, present: Pointer | None) -> Iterator[RegistrationFinding]:
    """Yield which other names have the same table or view."""
    if not metadata.uuid:
        return
    found: list[Neighbour] = catalog.server.neighbours.with_uuid(metadata.uuid, SHOWN_NEIGHBOURS)
    for other in found:
        if present is None or other.pointer_id != present.id:
            yield _refused("same-uuid", f"{other} is the same table: it has uuid {metadata.uuid}")
    for gone in catalog.server.neighbours.dropped_with_uuid(
        metadata.uuid, catalog.now_ms(), SHOWN_NEIGHBOURS
    ):
        yield _warning(
            "dropped-twin",
            f"{gone} was dropped and is the same table: it cannot come back while this one is there",
        )


def _of_metadata(
    catalog: Catalog, metadata: TableMetadata | ViewMetadata, location: str
) -> Iterator[RegistrationFinding]:
    spelled, named = scheme_of(metadata.location), scheme_of(location)
    if spelled != named:
        yield _warning(
            "other-scheme",
            f"The table's own paths begin with {spelled}: and its metadata-location with {named}:",
        )
    if not isinstance(metadata, TableMetadata):
        return
    if _OF_FILE_SYSTEM_TABLE.search(location):
        yield _warning(
            "file-system-names",
            "The file is that of a file-system table: writers that know it there can go on, unseen from here",
        )
    if not metadata.uuid:
        yield _warning(
            "no-uuid", "The table has no uuid, so that no twin of it is noticed: an import gives it one"
        )
    if _is_encrypted(metadata):
        yield _refused("encrypted", "The table is encrypted with keys that this server cannot ask for")
    if not allows_deletes(metadata.properties):
        is_snapshot = bool_property(metadata.properties, _SNAPSHOT_TABLE, default=False)
        yield (
            _warning(
                "snapshot-table",
                "Its data files belong to the table it was made from: gc.enabled stays false",
            )
            if is_snapshot
            else _warning("gc-disabled", "gc.enabled is false: no file of it is ever deleted here")
        )
    yield from _of_snapshot(catalog, metadata)


def _is_encrypted(metadata: TableMetadata) -> bool:
    return metadata.is_encrypted or any(snapshot.key_id is not None for snapshot in metadata.snapshots)


def _of_snapshot(catalog: Catalog, metadata: TableMetadata) -> Iterator[RegistrationFinding]:
    """Yield why the current snapshot cannot be read: a few files of it stand for all."""
    current = metadata.current_snapshot
    if current is None or current.manifest_list is None:
        return
    try:
        check_location(catalog, current.manifest_list, "manifest list of the current snapshot")
        is_there = catalog.files.exists(current.manifest_list)
    except InvalidLocation as error:
        yield _refused("outside-warehouse", f"{error}. {_OTHER_SPELLING}")
        return
    if not is_there:
        yield _refused(
            "files-missing", f"The current snapshot's list of manifests is gone: {current.manifest_list}"
        )
    elif not _is_encrypted(metadata):
        yield from _of_manifests(catalog, current)


def _of_manifests(catalog: Catalog, snapshot: Snapshot) -> Iterator[RegistrationFinding]:
    """Yield what a copy that broke off lacks; a question for each file would take too long."""
    try:
        found = TableManifests(catalog, None).manifests(snapshot)
    except (CorruptMetadata, FileMissing) as error:
        yield _refused(
            "files-missing",
            f"The current snapshot's list of manifests cannot be read, as in a copy that broke off: {error}",
        )
        return
    some = {manifest.manifest_path for manifest in (*found[:_SOME_MANIFESTS], *found[-_SOME_MANIFESTS:])}
    for location in sorted(some):
        if is_allowed(catalog, location) and not catalog.files.exists(location):
            yield _refused(
                "files-missing",
                f"A manifest of the current snapshot is gone, as in a copy that broke off: {location}",
            )
            return


def facts_of(metadata: TableMetadata | ViewMetadata) -> dict[str, Any]:
    """Return what a metadata file says about its table or view, as JSON has it."""
    facts: dict[str, Any] = {
        "uuid": metadata.uuid or None,
        "format-version": metadata.format_version,
        "location": metadata.location,
        # Set by an importer that left the table where it was, as a fence.
        **({"moved-to": metadata.properties[MOVED_TO]} if MOVED_TO in metadata.properties else {}),
    }
    if isinstance(metadata, ViewMetadata):
        dialects = sorted(metadata.current_version.dialects)
        return {**facts, "versions": len(metadata.versions), "dialects": dialects}
    summary = (metadata.current_snapshot.summary if metadata.current_snapshot else None) or {}
    named = {ref.snapshot_id for ref in metadata.snapshot_refs.values()}
    return {
        **facts,
        "last-updated-ms": metadata.last_updated_ms,
        "metadata-log": [entry.metadata_file for entry in metadata.metadata_log],
        "current-snapshot-id": metadata.current_snapshot.snapshot_id if metadata.current_snapshot else None,
        "snapshots": len(metadata.snapshots),
        "staged-snapshots": sum(
            "wap.id" in (item.summary or {}) for item in metadata.snapshots if item.snapshot_id not in named
        ),
        "refs": {name: ref.snapshot_id for name, ref in metadata.snapshot_refs.items()},
        "statistics-files": len(metadata.statistics) + len(metadata.partition_statistics),
        "totals": {name: summary[key] for name, key in _TOTALS.items() if key in summary},
    }


_TOTALS: Final = {
    "records": "total-records",
    "data-files": "total-data-files",
    "delete-files": "total-delete-files",
    "files-size": "total-files-size",
}
