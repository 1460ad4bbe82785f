"""Manifests of snapshots that the server can read: encrypted tables are refused."""

from __future__ import annotations

from app.catalog.context.catalog import Catalog
from app.catalog.manifests.table_manifests import TableManifests
from app.engine.branches.heads import check_branch, head_of
from app.engine.model.files.manifests import ManifestFile
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.errors import NotSupported


def readable_manifests(
    catalog: Catalog,
    identifier: TableIdentifier,
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    what: str,
) -> tuple[ManifestFile, ...]:
    """Return the manifests of a snapshot; `what` is a verb for the refusal.

    Raises:
        NotSupported: the table or a manifest is encrypted.
        CorruptMetadata, FileMissing, FilesUnavailable: the manifest list cannot be read.
    """
    listed = (
        ()
        if snapshot is None or metadata.is_encrypted
        else tuple(TableManifests(catalog, metadata).manifests(snapshot))
    )
    if metadata.is_encrypted or any(manifest.key_metadata is not None for manifest in listed):
        raise NotSupported(f"Cannot {what} {identifier}: it is encrypted, and the server has no keys")
    return listed


def manifests_of_head(
    catalog: Catalog, identifier: TableIdentifier, metadata: TableMetadata, branch: str, what: str
) -> tuple[ManifestFile, ...]:
    """Return the manifests of a branch's head; `what` is a verb for refusals.

    Raises:
        NoSuchRef, InvalidRequest: there is no such branch, or it is a tag.
        NotSupported: the table or a manifest is encrypted.
        CorruptMetadata, FileMissing, FilesUnavailable: the manifest list cannot be read.
    """
    check_branch(metadata, branch, what)
    return readable_manifests(catalog, identifier, metadata, head_of(metadata, branch), what)
