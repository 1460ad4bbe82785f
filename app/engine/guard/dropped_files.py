"""Which files an append lost: by the counts in the lists or, in doubt, by the entries."""

from __future__ import annotations

from collections.abc import Iterable

from app.engine.guard.findings import BudgetedManifests
from app.engine.guard.lists import Lists
from app.engine.model.files.manifests import FileKey, ManifestContent, ManifestEntry, ManifestFile
from app.engine.model.ids import Location, SnapshotId


def may_have_dropped(snapshot_id: SnapshotId, lists: Lists) -> list[ManifestContent]:
    """Return the contents that may have lost files: fewer were carried over than disappeared.

    Most appends keep every manifest, or carry over as many files as the merged manifests had.
    """
    suspects = []
    for content in ManifestContent:
        went = _sum(item.live_files for item in lists.gone if item.content is content)
        if went == 0:
            continue
        carried = _sum(
            # A manifest of another snapshot is new here, and all its files may be carried over.
            item.existing_files_count if item.added_snapshot_id == snapshot_id else item.live_files
            for item in lists.new
            if item.content is content
        )
        if went is None or carried is None or carried < went:
            suspects.append(content)
    return suspects


def surely_dropped(snapshot_id: SnapshotId, lists: Lists) -> tuple[int, Location] | None:
    """Return how many data files are surely lost, and a manifest of theirs, by the lists.

    Nothing is sure if any file was carried over, or if a list lacks counts.
    """
    new = [item for item in lists.new if item.content is ManifestContent.DATA]
    if any(item.added_snapshot_id != snapshot_id or item.existing_files_count != 0 for item in new):
        return None
    gone = [
        item for item in lists.gone if item.content is ManifestContent.DATA and (item.live_files or 0) > 0
    ]
    return (sum(item.live_files or 0 for item in gone), gone[0].manifest_path) if gone else None


def _sum(counts: Iterable[int | None]) -> int | None:
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


def dropped_files(source: BudgetedManifests, lists: Lists, content: ManifestContent) -> list[Location] | None:
    """Return files of one content that only the parent has; None if the budget is too small.

    Any commit may leave out delete files that are older than every data file: they apply to nothing.

    Raises:
        InvalidMetadata, FileMissing, FilesUnavailable: a manifest cannot be read.
    """
    gone = _live(source, (item for item in lists.gone if item.content is content))
    come = _live(source, (item for item in lists.new if item.content is content))
    if gone is None or come is None:
        return None
    lost = [entry for key, entry in gone.items() if key not in come]
    if content is ManifestContent.DELETES and lost:
        oldest = min(
            (
                item.min_sequence_number
                for item in lists.listed
                if item.content is ManifestContent.DATA and item.may_have_live_files
            ),
            default=None,
        )
        lost = [entry for entry in lost if oldest is not None and (entry.data_sequence_number or 0) >= oldest]
    return [entry.file.file_path for entry in lost]


def _live(
    source: BudgetedManifests, manifests: Iterable[ManifestFile]
) -> dict[FileKey, ManifestEntry] | None:
    found: dict[FileKey, ManifestEntry] = {}
    for manifest in manifests:
        if not manifest.may_have_live_files:
            continue
        entries = source.entries(manifest)
        if entries is None:
            return None
        found.update((entry.file.key, entry) for entry in entries if entry.is_live)
    return found
