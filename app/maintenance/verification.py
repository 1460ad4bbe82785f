"""Whether a job has left the rows of a table as they were: Spark reads before and after."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from app.engine.upkeep.sql_text import quoted
from app.maintenance.job_commits import JobCommit
from app.maintenance.spark.mounted_catalogs import MountedTable

Columns = tuple[str, ...]
_HAS_NO_HASH: Final = re.compile(r"map<|(?:^|[:<])variant(?=[,>]|$)")
"""Of a type as Spark writes it; a field may be called `variant`, too."""


class Verification(StrEnum):
    """How much is read to find out whether a job has changed rows."""

    COUNTS = "counts"
    """Rows are counted: without delete files, manifests alone say how many there are."""
    CHECKSUMS = "checksums"
    """All columns are read, twice for each commit, and compared in any order of the rows."""
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Rows:
    """What is compared of the rows of a snapshot."""

    number: int
    checksum: int | None = None


def changed_rows(table: MountedTable, commits: Sequence[JobCommit], verification: Verification) -> list[str]:
    """Return which commits have changed rows, as sentences.

    Args:
        table: where the snapshots are read.
        commits: of one job; those whose parent has expired cannot be compared.
        verification: how much is read.
    """
    if verification is Verification.OFF:
        return []
    changed = []
    read: dict[tuple[int, Columns], Rows] = {}

    def rows_at(snapshot_id: int, columns: Columns) -> Rows:
        if (snapshot_id, columns) not in read:
            read[snapshot_id, columns] = _rows(table, snapshot_id, columns)
        return read[snapshot_id, columns]

    for commit in commits:
        parent_id = commit.parent_id
        if parent_id is None or not commit.parent_summary:
            continue
        columns: Columns = ()
        if verification is Verification.CHECKSUMS:
            columns = _comparable(table, parent_id, commit.snapshot_id)
        before, after = rows_at(parent_id, columns), rows_at(commit.snapshot_id, columns)
        if before.number != after.number:
            changed.append(
                f"snapshot {commit.snapshot_id} has {after.number} rows, and its parent {parent_id} {before.number}"
            )
        elif before != after:
            changed.append(
                f"the rows of snapshot {commit.snapshot_id} are not those of its parent {parent_id}"
            )
    return changed


def _comparable(table: MountedTable, before: int, after: int) -> Columns:
    """Return the columns that both snapshots have with one type, and of which Spark has hashes."""
    theirs = dict(table.columns(before))
    return tuple(
        name
        for name, column_type in table.columns(after)
        if theirs.get(name) == column_type and not _HAS_NO_HASH.search(column_type)
    )


def _rows(table: MountedTable, snapshot_id: int, columns: Columns) -> Rows:
    place = table.at(snapshot_id)
    if not columns:
        return Rows(*table.one(f"SELECT count(*) FROM {place}"))
    listed = ", ".join(quoted(name) for name in columns)
    hashes = f"CAST(xxhash64({listed}) AS DECIMAL(38, 0))"
    number, checksum = table.one(f"SELECT count(*), coalesce(sum({hashes}), 0) FROM {place}")
    return Rows(number, int(checksum))
