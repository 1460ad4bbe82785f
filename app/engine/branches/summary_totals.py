"""Totals in the summary of a snapshot that is built on another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from app.engine.model.manifests import DataFile, FileContent
from app.engine.model.snapshot import Snapshot

TOTALS = (
    "total-records",
    "total-data-files",
    "total-files-size",
    "total-delete-files",
    "total-position-deletes",
    "total-equality-deletes",
)


def totals_after(
    head: Snapshot | None, added: Iterable[DataFile], removed: Iterable[DataFile]
) -> dict[str, str]:
    """Return the head's totals, changed by files that come and go; only those that it has."""
    change = _tally(added)
    change.subtract(_tally(removed))
    before = dict.fromkeys(TOTALS, "0") if head is None else head.summary or {}
    totals = {}
    for key in TOTALS:
        known = before.get(key, "")
        if known.isascii() and known.isdigit():
            totals[key] = str(max(0, int(known) + change[key]))
    return totals


def _tally(files: Iterable[DataFile]) -> Counter[str]:
    tally: Counter[str] = Counter()
    for file in files:
        size = file.content_size_in_bytes
        tally["total-files-size"] += file.file_size_in_bytes if size is None else size
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
