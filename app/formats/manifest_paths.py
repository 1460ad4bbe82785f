"""The locations that manifest lists and manifests name: what a purge must find."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import fastavro

from app.engine.model.ids import Location
from app.engine.model.snapshot import Snapshot
from app.errors import InvalidMetadata
from app.fileio.files import FileIO


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
    return [
        Location(entry["manifest_path"]) for entry in _records(files, snapshot.manifest_list, "manifest_path")
    ]


def content_files_of(files: FileIO, manifest: Location) -> Iterator[Location]:
    """Yield the locations of the data and delete files that a manifest names, whatever their status.

    Raises:
        FileMissing: the manifest is gone.
        InvalidMetadata: the manifest cannot be read.
        FilesUnavailable: the store does not answer.

    Spec: #manifests
    """
    for entry in _records(files, manifest, "data_file"):
        path = entry["data_file"].get("file_path")
        if not isinstance(path, str):
            raise InvalidMetadata(f"Cannot read manifest {manifest}: an entry has no file_path")
        yield Location(path)


def statuses_and_paths(files: FileIO, manifest: Location) -> list[tuple[int, str]]:
    """Return status and file path of each entry, read by a decoder that shares nothing with our own.

    Before anything is deleted because our own decoder says so, the two must agree.

    Raises:
        FileMissing: the manifest is gone.
        InvalidMetadata: the manifest cannot be read.
        FilesUnavailable: the store does not answer.
    """
    return [
        (entry["status"], entry["data_file"]["file_path"]) for entry in _records(files, manifest, "data_file")
    ]


def _records(files: FileIO, location: Location, needed: str) -> Iterator[dict[str, Any]]:
    content = files.read(location)
    try:
        for record in fastavro.reader(io.BytesIO(content)):
            if not isinstance(record, dict) or needed not in record:
                raise InvalidMetadata(f"Cannot read {location}: a record has no {needed}")
            yield record
    # fastavro raises whatever the broken bytes lead it into; this is the one place that turns it into ours.
    except (ValueError, EOFError, KeyError, IndexError, TypeError, OverflowError, AttributeError) as error:
        raise InvalidMetadata(f"Cannot read {location} as Avro: {error}") from error
