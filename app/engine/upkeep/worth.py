"""When each job is worth it: what it would do to a table, or why it is not worth a commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from app.engine.health.facts import FileFacts, StatisticsFacts
from app.engine.health.findings import counted
from app.engine.model.jobs import Job
from app.engine.upkeep.cold_partitions import ColdPart, cold_part
from app.engine.upkeep.conditions import Condition
from app.engine.upkeep.policy import Policy

HOT_GROUP_BYTES: Final = 2 << 30
HOT_COMMITS: Final = 10


@dataclass(frozen=True, slots=True)
class Work:
    """What a job would do."""

    reason: str
    files: int = 0
    rewritten_bytes: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)


Verdict = Work | str
"""What a job would do, or why it is not worth it."""


def _files(condition: Condition) -> FileFacts | None:
    files = condition.facts.files
    return files if files is not None and files.data_files + files.delete_files else None


def _data_files(policy: Policy, condition: Condition) -> Verdict:
    files = _files(condition)
    if files is None:
        return "the table has no files"
    least = policy.number("rewrite-data-files.min-files") or 0
    deleted_share = files.deleted_positions / files.rows if files.rows else 0.0
    options = _rewrite_options(policy, condition)
    cold = None if "where" in options or not least else _cold_part(policy, condition, files)
    part: FileFacts | ColdPart = files if cold is None else cold
    beside = (
        "" if cold is None else f"; {cold.hot_partitions} partitions that were written lately are left out"
    )
    if cold is not None:
        options["where"] = cold.where
    # Somebody who asks by name wants all deletes applied.
    is_asked = least == 0 and files.delete_files > 0
    is_deleted = files.delete_files > 0 and (
        deleted_share >= policy.ratio("rewrite-data-files.deleted-rows-ratio")
        or files.deletes_per_data_file >= policy.ratio("rewrite-data-files.delete-files-ratio")
    )
    if is_asked or (is_deleted and (cold is None or cold.delete_files)):
        # Deletes for a whole partition count in no ratio of Spark's: only their number does.
        options |= {"delete-file-threshold": "1"}
        return Work(
            f"{counted(files.delete_files, 'delete file')} for {counted(files.data_files, 'data file')}, "
            f"and {deleted_share:.0%} of the rows deleted by position{beside}",
            part.files_to_save + part.delete_files,
            part.data_bytes,
            options,
        )
    if part.files_to_save < max(least, 1):
        return f"{_saving(part.files_to_save, 'data file', max(least, 1))}{beside}"
    small = f"{files.small_files} of {files.data_files} data files are small"
    reason = f"{small}; {part.files_to_save} fewer would do{beside}"
    return Work(reason, part.files_to_save, part.small_bytes + files.large_bytes, options)


def _saving(saved: int, noun: str, least: int) -> str:
    return f"it would save {counted(saved, noun)}; {least} or more are worth it"


def _cold_part(policy: Policy, condition: Condition, files: FileFacts) -> ColdPart | None:
    """Return the part of a hot table that is rewritten; None if it may be all of it."""
    if not _is_hot(policy, condition):
        return None
    return cold_part(files, condition.latest_partitions, condition.now_ms - _cold_after_ms(policy) + 1)


def _cold_after_ms(policy: Policy) -> int:
    return policy.number("rewrite-data-files.cold-after-ms") or 0


def _is_hot(policy: Policy, condition: Condition) -> bool:
    """Say whether rows were changed lately: a rewrite of all files would lose against a change."""
    changed_ms = condition.rows_changed_ms
    return changed_ms is not None and condition.now_ms - changed_ms < _cold_after_ms(policy)


def _rewrite_options(policy: Policy, condition: Condition) -> dict[str, Any]:
    """Return the options of a rewrite: Spark's own, and the strategy, order and filter."""
    options: dict[str, Any] = {"min-input-files": "2"}
    files = _files(condition)
    if files is not None and files.old_spec_files:
        # Rewritten files that keep their age stay subject to equality deletes that are written meanwhile, but only to
        # those of their own spec: deletes of the old one would be lost. With a new age they are a conflict.
        options["use-starting-sequence-number"] = "false"
    group_bytes = policy.number("rewrite-data-files.max-group-bytes")
    if _is_hot(policy, condition):
        options |= {"partial-progress.enabled": "true", "partial-progress.max-commits": str(HOT_COMMITS)}
        group_bytes = group_bytes or HOT_GROUP_BYTES
    if group_bytes is not None:
        options["max-file-group-size-bytes"] = str(group_bytes)
    for name in ("strategy", "sort-order", "where"):
        value = policy.text(f"rewrite-data-files.{name}")
        if value:
            options[name] = value.strip().lower() if name == "strategy" else value
    if "sort-order" in options and not policy.says("rewrite-data-files.strategy"):
        options["strategy"] = "sort"  # As in Spark: an order alone asks for it.
    return options


def _position_deletes(policy: Policy, condition: Condition) -> Verdict:
    files = _files(condition)
    if files is None or not files.position_delete_files:
        return "there are no position delete files"
    least = policy.number("rewrite-position-deletes.min-files") or 0
    # The best that can be: one for each partition.
    saved = files.position_delete_files - min(files.position_delete_files, max(1, files.partitions))
    if saved < max(least, 1):
        return _saving(saved, "position delete file", max(least, 1))
    return Work(f"{files.position_delete_files} position delete files", saved, files.delete_bytes)


def _dangling_deletes(policy: Policy, condition: Condition) -> Verdict:
    files = _files(condition)
    found = 0 if files is None else files.dangling_deletes
    least = max(1, policy.number("remove-dangling-deletes.min-files") or 0)
    apply = "delete file applies" if found == 1 else "delete files apply"
    if found < least:
        return f"{found} {apply} to no data file; {least} or more are worth it"
    return Work(f"{found} {apply} to no data file any more", found)


def _manifests(policy: Policy, condition: Condition) -> Verdict:
    facts = condition.facts.manifests
    number = facts.data_manifests + facts.delete_manifests
    least = max(1, policy.number("rewrite-manifests.min-manifests") or 0)
    since = condition.snapshots_since.get(Job.REWRITE_MANIFESTS)
    kinds = (facts.data_manifests > 0) + (facts.delete_manifests > 0)
    saved = max(0, number - max(kinds, -(-facts.total_bytes // max(1, facts.target_bytes))))
    field = policy.text("rewrite-manifests.cluster-by")
    options = {"cluster-by": field} if field else {}
    if since is not None and since < least and not condition.history_of(Job.REWRITE_MANIFESTS).did_a_part:
        return f"{counted(since, 'snapshot')} came since it was done; {least} or more are worth it"
    if saved >= least:
        reason = f"{number} manifests with {facts.average_bytes:.0f} bytes on average; {saved} fewer would do"
        return Work(reason, saved, facts.total_bytes, options)
    overlap, most = facts.average_overlap, policy.number("rewrite-manifests.overlap") or 0
    if overlap is not None and overlap >= max(most, 2) and facts.data_manifests >= least:
        reason = f"{overlap:.1f} of {facts.data_manifests} manifests have to be read for one partition value"
        return Work(reason, saved, facts.total_bytes, options)
    return _saving(saved, "manifest", least)


def _partition_statistics(policy: Policy, condition: Condition) -> Verdict:
    metadata = condition.facts.metadata
    if not metadata.is_partitioned:
        return "the table is not partitioned"
    if condition.facts.snapshot_id is None:
        return "the table has no snapshot"
    least = max(1, policy.number("partition-statistics.min-snapshots") or 0)
    return _statistics(metadata.partition_statistics, least, condition.facts.manifests.total_bytes)


def _statistics(found: StatisticsFacts, least: int, cost: int) -> Verdict:
    if found.snapshots_behind is None:
        return Work("there are none yet", rewritten_bytes=cost)
    behind = found.snapshots_behind
    since = f"{counted(behind, 'snapshot')} came"
    if behind < least:
        return f"{since} since then; {least} or more are worth it"
    return Work(f"{since} since then", rewritten_bytes=cost)


def _table_statistics(policy: Policy, condition: Condition) -> Verdict:
    files = _files(condition)
    if files is None:
        return "the table has no files"
    last_ms = condition.history_of(Job.TABLE_STATISTICS).last_success_ms
    wait_ms = policy.number("table-statistics.wait-ms") or 0
    if last_ms is not None and condition.now_ms - last_ms < wait_ms:
        return "they were computed recently"
    return _statistics(condition.facts.metadata.statistics, 1, files.data_bytes)


def _expiry(policy: Policy, condition: Condition) -> Verdict:
    least = max(1, policy.number("expire-snapshots.min-snapshots") or 0)
    found = condition.expirable_snapshots
    if condition.expiry_refused is not None:
        return condition.expiry_refused
    waiting = condition.facts.waiting_deletions
    beside = f"; files of earlier ones wait to be deleted: {waiting[0]}" if waiting else ""
    snapshots = "snapshot is" if found == 1 else "snapshots are"
    if found < least:
        return f"{found} {snapshots} to expire; {least} or more are worth it{beside}"
    return Work(f"{found} {snapshots} older than the table keeps them{beside}", found)


def _orphans(policy: Policy, condition: Condition) -> Verdict:
    last_ms = condition.history_of(Job.REMOVE_ORPHAN_FILES).last_success_ms
    wait_ms = policy.number("remove-orphan-files.wait-ms") or 0
    if last_ms is not None and condition.now_ms - last_ms < wait_ms:
        return "they were looked for recently"
    reason = "they were never looked for" if last_ms is None else "they were looked for long ago"
    older_than_ms = policy.number("remove-orphan-files.older-than-ms") or 0
    return Work(reason, options={"older-than-ms": condition.now_ms - older_than_ms})


WORTH: Final[Mapping[Job, Callable[[Policy, Condition], Verdict]]] = {
    Job.REWRITE_DATA_FILES: _data_files,
    Job.REWRITE_POSITION_DELETES: _position_deletes,
    Job.REMOVE_DANGLING_DELETES: _dangling_deletes,
    Job.REWRITE_MANIFESTS: _manifests,
    Job.PARTITION_STATISTICS: _partition_statistics,
    Job.TABLE_STATISTICS: _table_statistics,
    Job.EXPIRE_SNAPSHOTS: _expiry,
    Job.REMOVE_ORPHAN_FILES: _orphans,
}
