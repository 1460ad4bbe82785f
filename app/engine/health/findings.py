"""Findings: what the facts about a table mean, and the command that mends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from shlex import quote
from typing import Final

from app.engine.health.facts import FileFacts, HealthFacts, MetadataFacts
from app.engine.health.metadata_facts import small_below
from app.engine.health.thresholds import HealthThresholds
from app.engine.model.format_versions import FORMAT_VERSIONS
from app.engine.model.ids import SnapshotId
from app.engine.properties.own_properties import DAY_MS

_COMPACT: Final = "icetower maintain {table} --jobs rewrite-data-files --spark 'local[*]'"
_COUNT_VALUES: Final = "icetower maintain {table} --jobs table-statistics --spark 'local[*]'"
_COUNT_PARTITIONS: Final = "icetower table partition-statistics {table}"
_EXPIRE: Final = "icetower table expire {table}"
_REWRITE_ALL: Final = (
    "CALL system.rewrite_data_files(table => {literal}, options => map('rewrite-all', 'true'))"
)
_SORT_ALL: Final = _REWRITE_ALL.replace("options", "strategy => 'sort', options")
_SET: Final = "ALTER TABLE {sql} SET TBLPROPERTIES "
_REWRITE_MANIFESTS: Final = "icetower table rewrite-manifests {table}"
_REMOVE_DANGLING: Final = "icetower table remove-dangling-deletes {table}"


class Severity(StrEnum):
    """How urgent a finding is."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


_RANKS: Final = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """One thing that a table's upkeep should see to."""

    code: str
    """Its name, which never changes."""
    severity: Severity
    message: str
    """One sentence with the figures."""
    command: str | None = None
    """What mends it; None where no command does.

    `{table}` stands for the table's name on the command line, `{sql}` for it in SQL, `{literal}` for that as a text.
    """


def findings(facts: HealthFacts, limits: HealthThresholds) -> list[HealthFinding]:
    """Return what there is to say about a table, the most urgent first."""
    found = [finding for rule in _RULES for finding in rule(facts, limits)]
    return sorted(found, key=lambda finding: _RANKS[finding.severity])


def about_snapshot(finding: HealthFinding, snapshot_id: SnapshotId, branch: str | None) -> HealthFinding:
    """Return a finding about another snapshot than that of main, with a command for that one.

    Args:
        finding: what was found.
        snapshot_id: of the snapshot.
        branch: of which it is the head.
    """
    command = finding.command
    if command in (_REWRITE_MANIFESTS, _REMOVE_DANGLING):
        command = None if branch is None else f"{command} --branch {quote(branch)}"
    elif command == _COUNT_PARTITIONS:
        command = f"{command} --snapshot-id {snapshot_id}"
    elif command in (_COMPACT, _COUNT_VALUES) or (command or "").startswith("CALL "):
        command = None  # Spark's procedures are about main.
    return replace(finding, command=command)


def unreadable(reason: str) -> HealthFinding:
    """Return the finding for a table that cannot be read."""
    return HealthFinding(
        "unreadable",
        Severity.CRITICAL,
        f"The table cannot be read: {reason}. While it may name files of others, expiries and purges of its warehouse"
        " wait: make it readable, or let it go",
        "icetower table unregister --unread {table}",
    )


def badness(found: Sequence[HealthFinding]) -> tuple[int, int, int]:
    """Return how many findings there are of each severity, the most urgent first."""
    counts = [sum(finding.severity is severity for finding in found) for severity in _RANKS]
    return counts[0], counts[1], counts[2]


def _size_text(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _days_text(days: float) -> str:
    return "1 day" if round(days) == 1 else f"{days:.0f} days"


def _unreadable_files(facts: HealthFacts, _limits: HealthThresholds) -> Iterator[HealthFinding]:
    if facts.metadata.is_encrypted:
        yield HealthFinding(
            "encrypted",
            Severity.INFO,
            "The table is encrypted, and the catalog has no keys: what it cannot read is not counted, no job is done.",
        )
    if facts.unreadable is not None:
        yield HealthFinding(
            "unreadable-manifest",
            Severity.CRITICAL,
            f"Files cannot be counted, and queries fail: {facts.unreadable}. Put back what is gone or damaged, or take"
            " the branch back to a snapshot whose files can all be read.",
        )


def _small_files(facts: HealthFacts, limits: HealthThresholds) -> Iterator[HealthFinding]:
    files, totals = facts.files, facts.totals
    number = files.data_files if files else totals.data_files
    average = files.average_bytes if files else totals.average_bytes
    if number is None or average is None or number <= limits.least_files:
        return
    target = facts.metadata.target_file_bytes
    # A file is not too small if it has the size that writers are asked for.
    if average < min(limits.small_average_bytes, small_below(target)):
        is_tiny = average < limits.tiny_average_bytes
        # Only files of one partition become one, but for those of old specs.
        is_too_fine = (
            files is not None and files.partitions_with_small_files == 0 and files.old_spec_files < 2
        )
        why = (
            " No partition has two of them, so that only a coarser partition spec makes fewer."
            if is_too_fine
            else ""
        )
        yield HealthFinding(
            "small-files",
            Severity.CRITICAL if is_tiny else Severity.WARNING,
            f"{number} data files have {_size_text(average)} on average; writers aim at {_size_text(target)}.{why}",
            None if is_too_fine else _COMPACT,
        )
    if files and files.most_small_files > limits.small_files_in_partition:
        yield HealthFinding(
            "small-files-in-partition",
            Severity.WARNING,
            f"{files.most_small_files} files of one partition have less than "
            f"{_size_text(files.small_below_bytes)}; {files.small_files} of all {files.data_files} data files have.",
            _COMPACT,
        )


def _delete_files(facts: HealthFacts, limits: HealthThresholds) -> Iterator[HealthFinding]:
    files, totals = facts.files, facts.totals
    number = files.delete_files if files else totals.delete_files
    data_files = files.data_files if files else totals.data_files
    if number is None or number <= limits.least_files:
        return
    ratio = number / data_files if data_files else float(number)
    severity = Severity.INFO
    if ratio > limits.delete_files_critical_ratio:
        severity = Severity.CRITICAL
    elif number > limits.delete_files_warning:
        severity = Severity.WARNING
    kinds = f" ({_kinds(files)})" if files else ""
    yield HealthFinding(
        "delete-files",
        severity,
        f"{number} delete files{kinds} have to be read with {data_files or 0} data files.",
        _COMPACT,
    )


def _kinds(files: FileFacts) -> str:
    numbers = (
        (files.position_delete_files, "of positions"),
        (files.equality_delete_files, "of equality"),
        (files.deletion_vectors, "deletion vectors"),
    )
    return ", ".join(f"{number} {kind}" for number, kind in numbers if number)


def _deleted_rows(facts: HealthFacts, limits: HealthThresholds) -> Iterator[HealthFinding]:
    files = facts.files
    if files is None or not files.rows:
        return
    if files.deleted_positions > limits.deleted_positions_ratio * files.rows:
        yield HealthFinding(
            "deleted-rows",
            Severity.WARNING,
            f"{files.deleted_positions} of {files.rows} rows are deleted and still in data files.",
            _COMPACT,
        )
    if files.equality_deletes > limits.equality_deletes_ratio * files.rows:
        yield HealthFinding(
            "equality-deletes",
            Severity.WARNING,
            f"{files.equality_deletes} equality deletes are held against {files.rows} rows in every query.",
            _COMPACT,
        )


def _dangling(facts: HealthFacts, _limits: HealthThresholds) -> Iterator[HealthFinding]:
    if facts.files and facts.files.dangling_deletes:
        yield HealthFinding(
            "dangling-deletes",
            Severity.INFO,
            f"{facts.files.dangling_deletes} of {facts.files.delete_files} delete files apply to no data file.",
            _REMOVE_DANGLING,
        )


def _snapshots(facts: HealthFacts, limits: HealthThresholds) -> Iterator[HealthFinding]:
    metadata = facts.metadata
    number, oldest = metadata.snapshots, metadata.oldest_snapshot_ms
    if number > limits.snapshots_warning and oldest is not None:
        age_ms = max(0, facts.looked_at_ms - oldest)
        why, command = _what_expires(metadata, facts.looked_at_ms)
        yield HealthFinding(
            "snapshots",
            Severity.CRITICAL if number > limits.snapshots_critical else Severity.WARNING,
            f"The table keeps {number} snapshots, the oldest for {_days_text(age_ms / DAY_MS)}{why}.",
            command,
        )


def _what_expires(metadata: MetadataFacts, now_ms: int) -> tuple[str, str | None]:
    """Return why no snapshot expires by itself, and the command that lets some go."""
    if not metadata.allows_deletes:
        return ", and gc.enabled forbids to expire them", None
    if metadata.oldest_expirable_ms is None:
        return ", and its branches, tags and least numbers keep all of them", None
    age_ms = max(0, now_ms - metadata.oldest_expirable_ms)
    if age_ms >= metadata.max_snapshot_age_ms:
        return "", _EXPIRE
    kept = _days_text(metadata.max_snapshot_age_ms / DAY_MS)
    return (
        f", and its settings keep them for {kept}",
        f"{_EXPIRE} --older-than {'1d' if age_ms > DAY_MS else '1h'}",
    )


def _properties(facts: HealthFacts, _limits: HealthThresholds) -> Iterator[HealthFinding]:
    flaws = facts.metadata.flawed_properties
    if flaws:
        more = f", and {len(flaws) - 1} more" if len(flaws) > 1 else ""
        yield HealthFinding(
            "flawed-properties",
            Severity.WARNING,
            f"A property makes no sense, and engines fail on it or pass over it: {flaws[0]}{more}.",
            "icetower table properties {table}",
        )


def _metadata(facts: HealthFacts, limits: HealthThresholds) -> Iterator[HealthFinding]:
    metadata = facts.metadata
    if metadata.metadata_bytes > limits.metadata_bytes:
        yield HealthFinding(
            "metadata-size",
            Severity.WARNING,
            f"Its metadata has {_size_text(metadata.metadata_bytes)}, which each client reads with each load.",
            _EXPIRE,
        )
    if metadata.metadata_log_entries > limits.metadata_log_entries:
        yield HealthFinding(
            "metadata-log",
            Severity.INFO,
            f"The metadata log has {metadata.metadata_log_entries} entries; "
            "write.metadata.previous-versions-max limits them.",
            _SET + "('write.metadata.previous-versions-max' = '100')",
        )
    if metadata.partition_specs > limits.partition_specs or metadata.schemas > limits.schemas:
        yield HealthFinding(
            "old-schemas-and-specs",
            Severity.INFO,
            f"The table keeps {counted(metadata.schemas, 'schema')} and "
            f"{counted(metadata.partition_specs, 'partition spec')}.",
            _EXPIRE + " --clean-expired-metadata",
        )
    if not FORMAT_VERSIONS[metadata.format_version].has_delete_files:
        yield HealthFinding(
            "format-version",
            Severity.INFO,
            f"The table has format version {metadata.format_version}, which has no delete files; "
            "an engine can set a newer format-version.",
            _SET + "('format-version' = '2')",
        )


def _manifests(facts: HealthFacts, limits: HealthThresholds) -> Iterator[HealthFinding]:
    manifests = facts.manifests
    number = manifests.data_manifests + manifests.delete_manifests
    if manifests.small_manifests > limits.small_manifests:
        yield HealthFinding(
            "small-manifests",
            Severity.WARNING,
            f"{manifests.small_manifests} of {number} manifests have less than half of "
            f"{_size_text(manifests.target_bytes)}.",
            _REWRITE_MANIFESTS,
        )
    overlap = manifests.average_overlap
    if overlap is not None and overlap > limits.manifest_overlap and 2 * overlap > manifests.data_manifests:
        yield HealthFinding(
            "unclustered-manifests",
            Severity.WARNING,
            f"A query for one partition reads {overlap:.0f} of {manifests.data_manifests} data manifests.",
            _REWRITE_MANIFESTS,
        )


def _partitions(facts: HealthFacts, limits: HealthThresholds) -> Iterator[HealthFinding]:
    files = facts.files
    data_files = files.data_files if files else facts.totals.data_files
    if not facts.metadata.is_partitioned:
        if (data_files or 0) > limits.unpartitioned_files:
            yield HealthFinding(
                "unpartitioned",
                Severity.INFO,
                f"{data_files} data files are not partitioned: every query looks at each of them.",
            )
    elif files and files.partition_skew > limits.partition_skew:
        yield HealthFinding(
            "partition-skew",
            Severity.INFO,
            f"The largest of {files.partitions} partitions has {_size_text(files.largest_partition_bytes)}, "
            f"{files.partition_skew:.0f} times the median.",
        )
    if files and files.old_spec_files:
        # Equality deletes apply in their own partition, and everywhere only if they have none.
        are_missed = files.equality_delete_files > 0 and facts.metadata.is_partitioned
        why = " Equality deletes of the present one do not apply to their rows." if are_missed else ""
        yield HealthFinding(
            "old-spec-files",
            Severity.WARNING if are_missed else Severity.INFO,
            f"{files.old_spec_files} of {files.data_files} data files have an old partition spec.{why}",
            # With the age of the old files, they would escape deletes of the old spec that come meanwhile.
            _REWRITE_ALL.replace("'true'", "'true', 'use-starting-sequence-number', 'false'"),
        )
    if files and files.old_order_files:
        yield HealthFinding(
            "old-order-files",
            Severity.INFO,
            f"{files.old_order_files} of {files.data_files} data files have an old sort order.",
            _SORT_ALL,
        )


def _statistics(facts: HealthFacts, _limits: HealthThresholds) -> Iterator[HealthFinding]:
    for name, statistics, command in (
        ("statistics", facts.metadata.statistics, _COUNT_VALUES),
        ("partition-statistics", facts.metadata.partition_statistics, _COUNT_PARTITIONS),
    ):
        # Most tables have none, and nothing is wrong with that; but old ones mislead.
        if statistics.state == "stale":
            yield HealthFinding(
                f"stale-{name}",
                Severity.INFO,
                f"The {name.replace('-', ' ')} are {counted(statistics.snapshots_behind or 0, 'snapshot')} old.",
                command,
            )


def _activity(facts: HealthFacts, limits: HealthThresholds) -> Iterator[HealthFinding]:
    days = (facts.looked_at_ms - facts.metadata.last_write_ms) / DAY_MS
    if days > limits.unwritten_days:
        yield HealthFinding(
            "not-written", Severity.INFO, f"Nothing was written to the table for {_days_text(days)}."
        )
    attempts = None if facts.activity is None else facts.activity.attempts_a_commit
    if attempts is not None and attempts > limits.attempts_a_commit:
        yield HealthFinding(
            "contention",
            Severity.INFO,
            f"A commit needs {attempts:.1f} attempts on average: its writers are in each other's way.",
            "icetower tower {table}",
        )


def _waiting(facts: HealthFacts, _limits: HealthThresholds) -> Iterator[HealthFinding]:
    if facts.waiting_deletions:
        number = len(facts.waiting_deletions)
        yield HealthFinding(
            "waiting-deletions",
            Severity.WARNING,
            f"Files of {number} {'expiry or orphan run' if number == 1 else 'expiries or orphan runs'} "
            f"wait to be deleted: {facts.waiting_deletions[0]}.",
        )


def _forks(facts: HealthFacts, _limits: HealthThresholds) -> Iterator[HealthFinding]:
    if facts.forks:
        number = "1 version" if len(facts.forks) == 1 else f"{len(facts.forks)} versions"
        yield HealthFinding(
            "forked",
            Severity.CRITICAL,
            f"A writer has added {number} that this table does not have, such as {facts.forks[-1]}: another "
            "catalog commits to it, too, its old folder was written to after it was adopted, or the database is an "
            "old backup.",
        )


_RULES: Final[tuple[Callable[[HealthFacts, HealthThresholds], Iterator[HealthFinding]], ...]] = (
    _unreadable_files,
    _small_files,
    _delete_files,
    _deleted_rows,
    _snapshots,
    _properties,
    _manifests,
    _metadata,
    _partitions,
    _dangling,
    _statistics,
    _activity,
    _waiting,
    _forks,
)
