"""Summaries of new snapshots: what was added and removed, and how much there is then."""

from __future__ import annotations

from collections.abc import Sequence

from app.engine.model.manifests import DataFile
from app.engine.model.snapshot import Snapshot


def added_counts(files: Sequence[DataFile]) -> dict[str, str]:
    """Return the numbers of added files, rows and bytes; nothing if there are no files."""
    return _counts("added-data-files", "added-records", "added-files-size", files)


def removed_counts(files: Sequence[DataFile]) -> dict[str, str]:
    """Return the numbers of removed files, rows and bytes; nothing if there are no files."""
    return _counts("deleted-data-files", "deleted-records", "removed-files-size", files)


def _counts(files_key: str, records_key: str, size_key: str, files: Sequence[DataFile]) -> dict[str, str]:
    if not files:
        return {}
    return {
        files_key: str(len(files)),
        records_key: str(sum(file.record_count for file in files)),
        size_key: str(sum(file.file_size_in_bytes for file in files)),
    }


def changed_partition_count(files: Sequence[DataFile]) -> dict[str, str]:
    """Return the number of partitions that files are in."""
    return {"changed-partition-count": str(len({file.partition_key for file in files}))}


def totals(head: Snapshot | None, added: Sequence[DataFile], removed: Sequence[DataFile]) -> dict[str, str]:
    """Return the head's totals, changed by what data files are added and removed.

    A total that the head does not have is not known, and stays out.
    """
    moves = {
        "total-records": _rows(added) - _rows(removed),
        "total-data-files": len(added) - len(removed),
        "total-files-size": _bytes(added) - _bytes(removed),
        "total-delete-files": 0,
        "total-position-deletes": 0,
        "total-equality-deletes": 0,
    }
    before = dict.fromkeys(moves, "0") if head is None else head.summary or {}
    found = {}
    for key, change in moves.items():
        known = before.get(key, "")
        if known.isascii() and known.isdigit():
            found[key] = str(max(0, int(known) + change))
    return found


def _rows(files: Sequence[DataFile]) -> int:
    return sum(file.record_count for file in files)


def _bytes(files: Sequence[DataFile]) -> int:
    return sum(file.file_size_in_bytes for file in files)
