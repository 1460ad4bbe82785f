"""Summaries of new snapshots: what was added and removed, and how much there is then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from app.engine.model.document import MAX_LONG, find_count
from app.engine.model.files.delete_files import is_deletion_vector
from app.engine.model.files.manifests import DataFile, FileContent
from app.engine.model.snapshot import Snapshot

TOTALS = (
    "total-records",
    "total-data-files",
    "total-files-size",
    "total-delete-files",
    "total-position-deletes",
    "total-equality-deletes",
)


def added_counts(files: Sequence[DataFile]) -> dict[str, str]:
    """Return the numbers of added data files, rows and bytes; nothing if there are no files."""
    if not files:
        return {}
    return {
        "added-data-files": str(len(files)),
        "added-records": str(sum(file.record_count for file in files)),
        "added-files-size": str(sum(file.file_size_in_bytes for file in files)),
    }


def removed_counts(files: Sequence[DataFile]) -> dict[str, str]:
    """Return the numbers of removed data and delete files, their rows and bytes, but no zeros."""
    counts: Counter[str] = Counter()
    for file in files:
        counts["removed-files-size"] += _size_of(file)
        if file.content is FileContent.DATA:
            counts["deleted-data-files"] += 1
            counts["deleted-records"] += file.record_count
            continue
        counts["removed-delete-files"] += 1
        if file.content is FileContent.EQUALITY_DELETES:
            counts["removed-equality-delete-files"] += 1
            counts["removed-equality-deletes"] += file.record_count
        else:
            kind = "removed-dvs" if is_deletion_vector(file) else "removed-position-delete-files"
            counts[kind] += 1
            counts["removed-position-deletes"] += file.record_count
    return {key: str(count) for key, count in counts.items() if count}


def _size_of(file: DataFile) -> int:
    """Return a file's bytes; of a deletion vector only its own, as others may share its file."""
    return file.file_size_in_bytes if file.content_size_in_bytes is None else file.content_size_in_bytes


def changed_partition_count(files: Sequence[DataFile]) -> dict[str, str]:
    """Return the number of partitions that files are in."""
    return {"changed-partition-count": str(len({file.partition_key for file in files}))}


def totals_after(
    head: Snapshot | None, added: Iterable[DataFile], removed: Iterable[DataFile]
) -> dict[str, str]:
    """Return the head's totals, changed by files that come and go; only those that it has."""
    change = _tally(added)
    change.subtract(_tally(removed))
    before = dict.fromkeys(TOTALS, "0") if head is None else head.summary or {}
    totals = {}
    for key in TOTALS:
        known = find_count(before.get(key))
        # Clients give up on a table with a total that is no long.
        if known is not None and known + change[key] <= MAX_LONG:
            totals[key] = str(max(0, known + change[key]))
    return totals


def _tally(files: Iterable[DataFile]) -> Counter[str]:
    tally: Counter[str] = Counter()
    for file in files:
        tally["total-files-size"] += _size_of(file)
        match file.content:
            case FileContent.DATA:
                tally["total-data-files"] += 1
                tally["total-records"] += file.record_count
            case FileContent.POSITION_DELETES:
                tally["total-delete-files"] += 1
                tally["total-position-deletes"] += file.record_count
            case FileContent.EQUALITY_DELETES:
                tally["total-delete-files"] += 1
                tally["total-equality-deletes"] += file.record_count
    return tally
