"""The locations that manifest lists and manifests name: what a purge must find."""

from __future__ import annotations

from collections.abc import Iterator

from app.engine.model.ids import Location
from app.engine.model.snapshot import Snapshot
from app.fileio.files import FileIO
from app.formats.manifest_columns import ManifestColumns
from app.formats.manifest_headers import unlisted_manifest
from app.formats.manifest_lists import read_manifest_list


def manifests_of(files: FileIO, snapshot: Snapshot) -> list[Location]:
    """Return the locations of a snapshot's manifests.

    Raises:
        FileMissing: the manifest list is gone.
        InvalidMetadata: the manifest list cannot be read.
        FilesUnavailable: the store does not answer.

    Spec: #manifest-lists
    """
    if snapshot.manifest_list is None:
        return [Location(path) for path in snapshot.manifests or ()]
    listed = read_manifest_list(files.read(snapshot.manifest_list), snapshot.manifest_list)
    return [manifest.manifest_path for manifest in listed]


def content_files_of(files: FileIO, manifest: Location) -> Iterator[Location]:
    """Yield the locations of the data and delete files that a manifest names, whatever their status.

    Raises:
        FileMissing: the manifest is gone.
        InvalidMetadata: the manifest cannot be read.
        FilesUnavailable: the store does not answer.

    Spec: #manifests
    """
    content = files.read(manifest)
    for entry in ManifestColumns(unlisted_manifest(content, manifest), content):
        yield entry.file.file_path
