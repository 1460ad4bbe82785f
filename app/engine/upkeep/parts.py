"""Parts of jobs: what is done of one for which the day's budget is too small."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.engine.health.file_summary import above_rounded
from app.engine.model.jobs import Job
from app.engine.upkeep.conditions import Condition
from app.engine.upkeep.policy import Policy
from app.engine.upkeep.worth import Work

VARYING_OPTIONS: Final = frozenset(
    {"older-than-ms", "max-bytes", "min-file-size-bytes", "max-file-size-bytes", "max-files-to-rewrite"}
)
"""Options that are hardly ever the same again: moments, and what a budget leaves."""


@dataclass(frozen=True, slots=True)
class SizePart:
    """The files below some size, or a number of them."""

    below_bytes: int
    """Only files with fewer bytes are taken."""
    most_files: int | None
    """How many of them are taken at most; None for all."""
    most_bytes: int
    """They have no more bytes than this."""
    files_to_save: int
    """How many fewer files there are afterwards, about."""


def part_of(job: Job, work: Work, policy: Policy, condition: Condition, left_bytes: int) -> Work | None:
    """Return the part of a job that rewrites no more than is left; None if there is none.

    Iceberg's procedures take no budget. What bounds them is which files they choose: by size, and for bin-packing by
    number (with a sort order, 1.10 would write too many files then, apache/iceberg 15576).

    Args:
        job: the job.
        work: all of what it would do.
        policy: what is wanted.
        condition: the table.
        left_bytes: how many bytes may still be rewritten today.
    """
    find = _PARTS.get(job)
    return None if find is None else find(work, policy, condition, left_bytes)


def best_part(
    sizes: Mapping[int, int], groups: int, target_bytes: int, left_bytes: int, *, limits_files: bool
) -> SizePart | None:
    """Return which files to merge, so that most of them go for the bytes that may be rewritten.

    Args:
        sizes: small files by their rounded size, in bytes.
        groups: in how many partitions they are at most: only files of one partition become one.
        target_bytes: the size of the files that are written.
        left_bytes: no more bytes may be rewritten.
        limits_files: whether a number of files can be asked for.

    Returns:
        None if no file could be saved.
    """
    parts = (
        part
        for part in _parts(sizes, groups, target_bytes, left_bytes)
        if limits_files or part.most_files is None
    )
    best = max(parts, key=lambda part: (part.files_to_save, -part.most_bytes), default=None)
    return best if best is not None and best.files_to_save > 0 else None


def _parts(sizes: Mapping[int, int], groups: int, target_bytes: int, left_bytes: int) -> Iterator[SizePart]:
    """Yield for each size the files below it: all, or as many of them as surely fit."""
    files = file_bytes = 0
    for size in sorted(sizes):
        below = above_rounded(size)
        files += sizes[size]
        file_bytes += sizes[size] * (below - 1)
        fits = file_bytes <= left_bytes
        taken = files if fits else left_bytes // below
        most_bytes = file_bytes if fits else taken * below
        # Whole groups are taken one after the other, and files of each become one at best.
        touched = min(taken, -(-min(groups, files) * taken // files))
        saved = taken - max(touched, -(-most_bytes // max(1, target_bytes)))
        yield SizePart(below, None if fits else taken, most_bytes, saved)


def _data_files(work: Work, policy: Policy, condition: Condition, left_bytes: int) -> Work | None:
    files, target_bytes = condition.facts.files, condition.facts.metadata.target_file_bytes
    if files is None or not files.sizes:
        return None
    limits_files = work.options.get("strategy") != "sort" and "sort-order" not in work.options
    largest = above_rounded(max(files.sizes))
    if "delete-file-threshold" in work.options:
        # Which data files have deletes is not counted, so that any of them may be taken.
        most = left_bytes // largest
        if not limits_files or not most:
            return None
        options = {**work.options, "max-files-to-rewrite": str(most)}
        return _with_part(work, min(work.files, most), most * largest, options)
    small = {size: count for size, count in files.sizes.items() if size < files.small_below_bytes}

    def find(budget: int) -> SizePart | None:
        return best_part(
            small, files.partitions_with_small_files, target_bytes, budget, limits_files=limits_files
        )

    found = _worthwhile(find, policy, "rewrite-data-files.min-files", left_bytes)
    if found is None:
        return None
    # Large files and those with many deletes are left to a day that has more.
    options = {**work.options, "min-file-size-bytes": str(found.below_bytes), "delete-ratio-threshold": "1.0"}
    if largest > target_bytes:
        options["max-file-size-bytes"] = str(2 * largest)
    if found.most_files is not None:
        options["max-files-to-rewrite"] = str(found.most_files)
    return _with_part(work, min(work.files, found.files_to_save), found.most_bytes, options)


def _position_deletes(work: Work, policy: Policy, condition: Condition, left_bytes: int) -> Work | None:
    files, target_bytes = condition.facts.files, condition.facts.metadata.target_delete_file_bytes
    if files is None:
        return None
    sizes = {
        size: count
        for size, count in files.position_delete_sizes.items()
        if above_rounded(size) < target_bytes
    }

    def find(budget: int) -> SizePart | None:
        return best_part(sizes, files.partitions, target_bytes, budget, limits_files=False)

    found = _worthwhile(find, policy, "rewrite-position-deletes.min-files", left_bytes)
    if found is None:
        return None
    largest = above_rounded(max(files.position_delete_sizes))
    options = {**work.options, "min-file-size-bytes": str(found.below_bytes)}
    if largest > target_bytes:
        options["max-file-size-bytes"] = str(2 * largest)
    return _with_part(work, min(work.files, found.files_to_save), found.most_bytes, options)


def _manifests(work: Work, policy: Policy, condition: Condition, left_bytes: int) -> Work | None:
    average = max(1.0, condition.facts.manifests.average_bytes)
    least = policy.number("rewrite-manifests.min-manifests") or 0
    is_day_enough = (policy.number("daily-bytes") or 0) >= least * average
    if left_bytes < max(2, least if is_day_enough else 0) * average:
        return None
    files = work.files * left_bytes // max(1, work.rewritten_bytes)
    return _with_part(work, files, left_bytes, {**work.options, "max-bytes": left_bytes})


def _with_part(work: Work, files: int, rewritten_bytes: int, options: Mapping[str, Any]) -> Work:
    reason = f"{work.reason}; a part of {rewritten_bytes} bytes is done, which is what today's budget leaves"
    return Work(reason, files, rewritten_bytes, options)


def _worthwhile(
    find: Callable[[int], SizePart | None], policy: Policy, threshold: str, left_bytes: int
) -> SizePart | None:
    """Return a part that saves as many files as are worth it, or as a whole day's budget could."""
    found = find(left_bytes)
    if found is None:
        return None
    least = policy.number(threshold) or 0
    of_a_day = find(policy.number("daily-bytes") or 0)
    is_worth_it = found.files_to_save >= least or of_a_day is None or of_a_day.files_to_save < least
    return found if is_worth_it else None


_PARTS: Final[Mapping[Job, Callable[[Work, Policy, Condition, int], Work | None]]] = {
    Job.REWRITE_DATA_FILES: _data_files,
    Job.REWRITE_POSITION_DELETES: _position_deletes,
    Job.REWRITE_MANIFESTS: _manifests,
}
"""Statistics have none: they are of all rows, or of all partitions."""
