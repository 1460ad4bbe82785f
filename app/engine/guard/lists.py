"""What the manifest lists of a snapshot and its parent say, before any manifest is opened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import is_

from app.engine.guard.findings import Finding
from app.engine.model.document import find_count
from app.engine.model.files.entry_filters import EntryFacts, entry_facts
from app.engine.model.files.manifests import (
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from app.engine.model.ids import SnapshotId
from app.engine.model.settings.guard_settings import FindingKind
from app.engine.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Lists:
    """A snapshot's manifests, compared by their paths with those of its parent."""

    kept: tuple[tuple[ManifestFile | None, ManifestFile], ...]
    """Each as the parent lists it (None if unknown), and as the snapshot lists it."""
    new: tuple[ManifestFile, ...]
    gone: tuple[ManifestFile, ...]
    is_whole: bool
    """Whether the parent's list is known; if not, `new` only has the manifests that the snapshot wrote."""

    @property
    def listed(self) -> Iterator[ManifestFile]:
        """The snapshot's manifests, new ones first."""
        yield from self.new
        yield from (after for _, after in self.kept)

    @property
    def listed_before(self) -> Iterator[ManifestFile]:
        """The parent's manifests, as far as they are known."""
        yield from self.gone
        yield from (before for before, _ in self.kept if before is not None)


def compare_lists(
    snapshot_id: SnapshotId, listed: Sequence[ManifestFile], before: Sequence[ManifestFile] | None
) -> Lists:
    """Compare a snapshot's manifests with its parent's; `before` is None if unknown."""
    if before is None:
        new = tuple(item for item in listed if item.added_snapshot_id == snapshot_id)
        others = tuple((None, item) for item in listed if item.added_snapshot_id != snapshot_id)
        return Lists(others, new, (), is_whole=False)
    added = len(listed) - len(before)
    if added >= 0 and all(map(is_, before, listed[added:])):
        # Most commits put their manifests in front of those that were there.
        old_paths = {item.manifest_path for item in before}
        are_distinct = len(old_paths) == len(before)
        if are_distinct and not any(item.manifest_path in old_paths for item in listed[:added]):
            return Lists(tuple(zip(before, before, strict=True)), tuple(listed[:added]), (), is_whole=True)
    old = {item.manifest_path: item for item in before}
    paths = {item.manifest_path for item in listed}
    return Lists(
        tuple((old[item.manifest_path], item) for item in listed if item.manifest_path in old),
        tuple(item for item in listed if item.manifest_path not in old),
        tuple(item for item in before if item.manifest_path not in paths),
        is_whole=True,
    )


@dataclass(frozen=True, slots=True)
class Tally:
    """How many live files and rows some manifests have."""

    data_files: int = 0
    delete_files: int = 0
    records: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.data_files + other.data_files,
            self.delete_files + other.delete_files,
            self.records + other.records,
        )


def tally_of_lists(manifests: Iterable[ManifestFile]) -> Tally | None:
    """Return the live files and rows by the counts in the lists; None if a count is missing."""
    whole = Tally()
    for manifest in manifests:
        files = manifest.live_files
        if files is None:
            return None
        if manifest.content is ManifestContent.DELETES:
            whole += Tally(delete_files=files)
        elif manifest.added_rows_count is None or manifest.existing_rows_count is None:
            return None
        else:
            rows = manifest.added_rows_count + manifest.existing_rows_count
            whole += Tally(data_files=files, records=rows)
    return whole


def tally_of_entries(entries: Iterable[ManifestEntry]) -> Tally:
    """Return the live files and rows by the entries."""
    return tally_of_facts(entry_facts(entries))


def tally_of_facts(facts: Iterable[EntryFacts]) -> Tally:
    """Return the live files and rows by the facts of entries."""
    data_files = delete_files = records = 0
    for fact in facts:
        if fact.status is EntryStatus.DELETED:
            continue
        if fact.content is FileContent.DATA:
            data_files += 1
            records += fact.record_count
        else:
            delete_files += 1
    return Tally(data_files, delete_files, records)


_TOTALS: Mapping[str, str] = {
    "total-data-files": "data_files",
    "total-delete-files": "delete_files",
    "total-records": "records",
}
_DUPLICATES = "deleted-duplicate-files"


@dataclass(frozen=True, slots=True)
class Claim:
    """What a summary says of one total: before, and after."""

    key: str
    before: int
    after: int
    may_start_at_zero: bool = False

    def holds(self, come: Tally, gone: Tally) -> bool:
        """Return whether the manifests that came and went account for the change."""
        change = self.change(come, gone)
        return self.after - self.before == change or (self.may_start_at_zero and self.after == change)

    def change(self, come: Tally, gone: Tally) -> int:
        """Return by how much the manifests change this total."""
        name = _TOTALS[self.key]
        found: int = getattr(come, name) - getattr(gone, name)
        return found


def claims(snapshot: Snapshot, parent: Snapshot | None, *, begins_branch: bool = False) -> list[Claim]:
    """Return the changes of totals that a summary claims, without older mistakes in totals.

    Java takes the earlier totals from the branch, so the first commit to a new branch starts at zero, although its
    parent is the head of another one: both ways to count are sound. Skips totals that the parent does not report,
    and snapshots that removed duplicates.
    """
    after = snapshot.summary or {}
    if after.get(_DUPLICATES, "0") != "0":
        return []
    before = dict.fromkeys(_TOTALS, "0") if parent is None else parent.summary or {}
    found = []
    for key in _TOTALS:
        claimed, was = find_count(after.get(key)), find_count(before.get(key))
        if claimed is not None and was is not None:
            found.append(Claim(key, was, claimed, may_start_at_zero=begins_branch))
    return found


def sequence_findings(snapshot: Snapshot, parent: Snapshot | None, lists: Lists) -> Iterator[Finding]:
    """Yield a finding about the first impossible sequence number of a list.

    Spec: #sequence-numbers
    """
    problem = _snapshot_problem(snapshot, parent)
    if problem is not None:
        message = f"snapshot {snapshot.snapshot_id} {problem}"
        yield Finding(FindingKind.SEQUENCE_NUMBERS, message, snapshot.snapshot_id, snapshot.manifest_list)
        return
    highest = snapshot.sequence
    for before, manifest in (*((None, item) for item in lists.new), *lists.kept):
        # Most are kept as they were.
        if before is manifest and 0 <= manifest.min_sequence_number <= manifest.sequence_number <= highest:
            continue
        problem = _manifest_problem(snapshot, manifest, before)
        if problem is not None:
            path = manifest.manifest_path
            message = f"snapshot {snapshot.snapshot_id} lists manifest {path} with {problem}"
            yield Finding(FindingKind.SEQUENCE_NUMBERS, message, snapshot.snapshot_id, path)
            return


def _snapshot_problem(snapshot: Snapshot, parent: Snapshot | None) -> str | None:
    # Before version 2 every number is 0.
    if parent is not None and snapshot.sequence <= parent.sequence and (snapshot.sequence or parent.sequence):
        return f"has sequence number {snapshot.sequence}, its parent already {parent.sequence}"
    return None


def _manifest_problem(snapshot: Snapshot, manifest: ManifestFile, before: ManifestFile | None) -> str | None:
    number, lowest = manifest.sequence_number, manifest.min_sequence_number
    if number < 0 or lowest < 0:
        return f"sequence number {min(number, lowest)}"
    if number > snapshot.sequence:
        return f"sequence number {number}, higher than its own {snapshot.sequence}"
    if lowest > number:
        return f"sequence number {number}, but files of {lowest} at the lowest"
    if before is not None:
        if (before.sequence_number, before.min_sequence_number) != (number, lowest):
            return (
                f"sequence number {number} and at the lowest {lowest}, its parent with {before.sequence_number} "
                f"and {before.min_sequence_number}"
            )
    elif manifest.added_snapshot_id == snapshot.snapshot_id and number != snapshot.sequence:
        return f"sequence number {number} as its own, which is {snapshot.sequence}"
    return None
