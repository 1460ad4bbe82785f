"""Counting a snapshot's live files: manifest by manifest, read ahead, and kept by manifest."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Final

from app.catalog.context.catalog import Catalog
from app.catalog.manifests.table_manifests import TableManifests
from app.engine.health.file_summary import FileSummary, merged, summarize
from app.engine.model.files.manifests import ManifestFile
from app.formats.manifests.live_columns import UnpackedManifest

_AHEAD: Final = 4
"""So many manifests are read and unpacked while an earlier one is counted."""


def count_files(
    catalog: Catalog, source: TableManifests, manifests: Sequence[ManifestFile], small_below_bytes: int
) -> FileSummary:
    """Return what is counted of the live files that these manifests name.

    A manifest never changes, so what was counted of it is kept.

    Raises:
        InvalidLocation, CorruptMetadata, FileMissing, FilesUnavailable: a manifest cannot be read.
    """
    return merged(_summaries(catalog, source, manifests, small_below_bytes), small_below_bytes)


def _summaries(
    catalog: Catalog, source: TableManifests, manifests: Sequence[ManifestFile], small_below_bytes: int
) -> Iterator[FileSummary]:
    kept = catalog.server.file_summaries
    unknown: list[tuple[Hashable, ManifestFile]] = []
    for manifest in manifests:
        if not manifest.may_have_live_files:
            continue
        key = _key(source, catalog, manifest, small_below_bytes)
        summary = kept.find(key)
        if summary is None:
            unknown.append((key, manifest))
        else:
            yield summary
    unpacked = read_ahead(catalog, source, (manifest for _, manifest in unknown))
    for (key, _), found in zip(unknown, unpacked, strict=True):
        summary = summarize(source.live_columns(found), small_below_bytes)
        kept.put(key, summary, summary.size_bytes)
        yield summary


def _key(
    source: TableManifests, catalog: Catalog, manifest: ManifestFile, small_below_bytes: int
) -> Hashable:
    return (
        catalog.files,
        source.registration,
        manifest.manifest_path,
        manifest.manifest_length,
        manifest.partition_spec_id,
        manifest.content,
        manifest.sequence_number,
        small_below_bytes,
    )


def read_ahead(
    catalog: Catalog, source: TableManifests, manifests: Iterable[ManifestFile]
) -> Iterator[UnpackedManifest]:
    """Yield manifests in their order, while the next ones are read and unpacked beside.

    Raises:
        InvalidLocation, CorruptMetadata, FileMissing, FilesUnavailable: a manifest cannot be read.
    """
    under_way: deque[tuple[Future[None], list[UnpackedManifest]]] = deque()

    def start(manifest: ManifestFile) -> None:
        place: list[UnpackedManifest] = []
        work = catalog.server.side_work.start(lambda: place.append(source.unpacked(manifest)))
        under_way.append((work, place))

    for manifest in manifests:
        start(manifest)
        if len(under_way) > _AHEAD:
            yield _done(*under_way.popleft())
    while under_way:
        yield _done(*under_way.popleft())


def _done(work: Future[None], place: list[UnpackedManifest]) -> UnpackedManifest:
    try:
        work.result()
    finally:
        del work  # an error that it has would lead back to this frame, and what was read would stay
    return place[0]
