"""Looking at a new snapshot: its place, its lists, then its manifests within the budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from app.engine.guard.arrivals import Arrival
from app.engine.guard.dropped_files import dropped_files, may_have_dropped, surely_dropped
from app.engine.guard.findings import BudgetedManifests, Finding, Report, SkippedCheck
from app.engine.guard.foreign_files import ForeignFiles
from app.engine.guard.lists import (
    Claim,
    Lists,
    Tally,
    claims,
    compare_lists,
    sequence_findings,
    tally_of_entries,
    tally_of_facts,
    tally_of_lists,
)
from app.engine.guard.lost_deletes import Moves
from app.engine.guard.lost_vectors import RemovedVectors
from app.engine.model.files.entry_filters import EntryFacts, entry_facts, is_surely_of_another_spec
from app.engine.model.files.manifests import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from app.engine.model.ids import Location
from app.engine.model.settings.guard_settings import FindingKind
from app.engine.model.table_metadata import TableMetadata
from app.errors import BadRequest, CorruptMetadata, FileMissing

IsInside = Callable[[str], bool]
"""Whether a location is one where the table writes."""
_FILES = {ManifestContent.DATA: "data files", ManifestContent.DELETES: "delete files"}
_UNREADABLE = (BadRequest, CorruptMetadata)
"""Files that we cannot read are not findings: others may be able to read them."""


def look_at(
    arrival: Arrival,
    table: TableMetadata,
    source: BudgetedManifests,
    is_inside: IsInside,
    foreign: ForeignFiles | None = None,
) -> Report:
    """Return what is wrong with a new snapshot of a table, and what could not be checked.

    In the same pass all its new files are given to `foreign`.

    Legal, and no finding: merged and inherited manifests of any age, lists without counts, no summary, no files,
    a table that was replaced, a snapshot that no ref names.

    Raises:
        FilesUnavailable: the store does not answer.
    """
    look = _Look(arrival, table, source, is_inside, ForeignFiles(is_inside) if foreign is None else foreign)
    look.all()
    return Report(tuple(look.findings), tuple(look.unchecked))


@dataclass(slots=True)
class _Opened:
    """What was seen in the new manifests in one pass."""

    tally: Tally = field(default_factory=Tally)
    is_complete: bool = True
    outside: list[Location] = field(default_factory=list)


class _Look:
    def __init__(
        self,
        arrival: Arrival,
        table: TableMetadata,
        source: BudgetedManifests,
        is_inside: IsInside,
        foreign: ForeignFiles,
    ) -> None:
        self.findings: list[Finding] = list(arrival.findings)
        self.unchecked: list[SkippedCheck] = []
        self._snapshot, self._parent, self._is_root = arrival.snapshot, arrival.parent, arrival.is_root
        self._begins_branch = arrival.begins_branch
        self._table, self._moves = table, Moves(arrival.snapshot)
        self._vectors = RemovedVectors(arrival.snapshot.snapshot_id)
        self._source, self._is_inside, self._foreign = source, is_inside, foreign

    def all(self) -> None:
        listed = self._listed()
        if listed is None:
            self._foreign.is_known = False
            return
        lists = compare_lists(self._snapshot.snapshot_id, listed, self._before())
        if lists.kept and not lists.is_whole:
            self._foreign.is_known = False  # these may be new as well
        self.findings += sequence_findings(self._snapshot, self._parent, lists)
        opened = self._open_new(lists)
        if lists.is_whole:
            # Lost files come first: a refusal names the first finding, and wrong totals mostly follow from them.
            if self._snapshot.operation == "append":
                self._check_dropped(lists)
            self._check_moved(lists)
            self._check_vectors(lists)
            self._check_totals(lists, opened)

    def _listed(self) -> Sequence[ManifestFile] | None:
        snapshot = self._snapshot
        location = snapshot.manifest_list
        if location is not None and not self._foreign.add(location) and not self._is_inside(location):
            self._found(
                FindingKind.OUTSIDE_LOCATION, f"has its manifest list outside the table: {location}", location
            )
        if snapshot.key_id is not None:
            self._not_checked("its manifest list is encrypted")
            return None
        try:
            listed = self._source.manifests(snapshot)
        except FileMissing as error:
            what = f"names a file that is not there: {error.location}"
            self._found(FindingKind.MISSING_FILE, what, Location(error.location))
            return None
        except _UNREADABLE as error:
            self._not_checked(str(error))
            return None
        if listed is None:
            self._not_checked("its manifest list is larger than may be read")
        return listed

    def _before(self) -> Sequence[ManifestFile] | None:
        """Return the parent's manifests: an empty list without a parent, None if they are unknown."""
        if self._parent is None:
            return () if self._is_root else None
        if self._parent.key_id is not None:
            self._not_checked("its parent's manifest list is encrypted")
            return None
        try:
            before = self._source.manifests(self._parent)
        except (FileMissing, *_UNREADABLE) as error:
            self._not_checked(f"its parent's manifests are not known: {error}")
            return None
        if before is None:
            self._not_checked("its parent's manifest list is larger than may be read")
        return before

    def _open_new(self, lists: Lists) -> _Opened:
        opened = _Opened()
        for manifest in lists.new:
            is_own = self._foreign.add(manifest.manifest_path)
            if not is_own and not self._is_inside(manifest.manifest_path):
                opened.outside.append(manifest.manifest_path)
            entries = self._entries(manifest, is_new=True)
            if entries is None:
                opened.is_complete = self._foreign.is_known = False
            else:
                self._read_new(manifest, entries, opened)
        if opened.outside:
            first, others = opened.outside[0], len(opened.outside) - 1
            more = f" and {others} more" if others else ""
            what = f"adds files outside the places where the table writes: {first}{more}"
            self._found(FindingKind.OUTSIDE_LOCATION, what, first)
        return opened

    def _entries(self, manifest: ManifestFile, *, is_new: bool) -> Iterable[ManifestEntry] | None:
        path = manifest.manifest_path
        try:
            entries = self._source.entries(manifest)
            if entries is None and is_new and self._source.exists(path) is False:
                raise FileMissing(path)
        except FileMissing as error:
            if is_new:
                self._found(FindingKind.MISSING_FILE, f"lists a manifest that is not there: {path}", path)
            else:
                self._not_checked(str(error))
            return None
        except _UNREADABLE as error:
            self._not_checked(str(error))
            return None
        if entries is None:
            self._not_checked(f"manifest {path} is larger than may still be read")
        return entries

    def _read_new(self, manifest: ManifestFile, entries: Iterable[ManifestEntry], opened: _Opened) -> None:
        kept: list[EntryFacts] = []
        flawed = False
        try:
            for facts in entry_facts(entries):
                kept.append(facts)
                location, status = facts.path, facts.status
                is_own = status is EntryStatus.DELETED or self._foreign.add(location)
                if not is_own and status is EntryStatus.ADDED and not self._is_inside(location):
                    opened.outside.append(location)
                if not flawed and (problem := _entry_problem(manifest, facts)) is not None:
                    flawed = True
                    self._found(
                        FindingKind.SEQUENCE_NUMBERS,
                        f"has {location} with {problem} in manifest {manifest.manifest_path}",
                        manifest.manifest_path,
                    )
        except _UNREADABLE as error:
            self._not_checked(str(error))
            opened.is_complete = self._foreign.is_known = False
            return
        opened.tally += tally_of_facts(kept)
        self._moves.note(manifest, kept)
        self._vectors.note(manifest, kept)
        if any(facts.status is not EntryStatus.DELETED for facts in kept):
            self._check_spec(manifest, entries)

    def _check_spec(self, manifest: ManifestFile, entries: Iterable[ManifestEntry]) -> None:
        """Check that live files have the partition spec that readers will take them to have.

        The id of a spec that is removed is free for another one, and a client that does not know of it writes on.
        """
        spec_id, path = manifest.partition_spec_id, manifest.manifest_path
        spec = self._table.find_spec(spec_id)
        if spec is None:
            what = f"lists manifest {path} of partition spec {spec_id}, which the table does not have"
        elif is_surely_of_another_spec(entries, spec):
            what = (
                f"lists manifest {path}, which was written with another partition spec {spec_id} than the table has "
                "now: its files would be read with the wrong partition fields"
            )
        else:
            return
        self._found(FindingKind.PARTITION_SPEC, what, path)

    def _check_totals(self, lists: Lists, opened: _Opened) -> None:
        doubtful = claims(self._snapshot, self._parent, begins_branch=self._begins_branch)
        come, gone = tally_of_lists(lists.new), tally_of_lists(lists.gone)
        if come is not None and gone is not None:
            doubtful = [claim for claim in doubtful if not claim.holds(come, gone)]
        if not doubtful:
            return
        # Some writers count wrongly in their lists: the entries decide.
        found = self._tally_of_gone(lists) if opened.is_complete else None
        if found is None:
            self._not_checked("its summary's totals could not be compared with all manifests")
            return
        wrong = next((claim for claim in doubtful if not claim.holds(opened.tally, found)), None)
        if wrong is not None:
            self._found(FindingKind.SUMMARY_TOTALS, _contradiction(wrong, opened.tally, found), None)

    def _tally_of_gone(self, lists: Lists) -> Tally | None:
        whole = Tally()
        for manifest in lists.gone:
            entries = self._entries(manifest, is_new=False)
            if entries is None:
                return None
            try:
                whole += tally_of_entries(entries)
            except _UNREADABLE as error:
                self._not_checked(str(error))
                return None
        return whole

    def _check_moved(self, lists: Lists) -> None:
        moves = self._moves
        suspects = moves.suspects(self._table, lists.listed_before)
        deletes = self._all_entries(suspects) if suspects else None
        removed = None if deletes is None else self._all_entries(moves.left)
        if deletes is None or removed is None:
            return
        lost = moves.lost(removed, deletes, self._table)
        if lost is not None:
            file, delete = lost.file.file.file_path, lost.delete.file.file_path
            self._found(
                FindingKind.LOST_DELETES,
                f"moves the rows of {file} to another partition spec with sequence number {lost.age}, where "
                f"equality deletes of sequence number {lost.delete.data_sequence_number} do not apply to them any "
                f"more, {delete} among them; a rewrite that gives them a new number keeps the deletes (Spark's option "
                "use-starting-sequence-number=false), and so does any rewrite while the writer of these deletes is "
                "stopped",
                file,
            )

    def _check_vectors(self, lists: Lists) -> None:
        """Check that data files which lose their deletion vector get another one, or go.

        Most often the new manifests say so; only otherwise the others are opened.
        """
        vectors, back = self._vectors, list[Location]()
        for manifest in vectors.left:
            if not self._gives(manifest, partial(vectors.suspect, manifest)):
                return
        if not vectors.suspects:
            return
        kept = [after for _, after in lists.kept]
        # Most often new vectors say it. A manifest with many others is looked at after those that have only new ones.
        new = sorted(
            lists.new, key=lambda item: (item.content is ManifestContent.DATA, item.existing_files_count or 0)
        )
        for manifest in (*new, *(item for item in kept if item.content is ManifestContent.DELETES)):
            if vectors.suspects and not self._gives(manifest, partial(vectors.clear, manifest)):
                return
        for manifest in lists.listed:
            if vectors.may_stay_in(manifest) and not self._gives(
                manifest, lambda entries: back.extend(vectors.convict(entries))
            ):
                return
        if back:
            of = f"of {back[0]}, which stays"
            if len(back) > 1:
                of = f"of {len(back)} data files that stay, {back[0]} among them"
            self._found(
                FindingKind.LOST_DELETES,
                f"removes deletion vectors {of}, and adds no others: the rows that they delete would be back",
                back[0],
            )

    def _gives(self, manifest: ManifestFile, take: Callable[[Iterable[ManifestEntry]], None]) -> bool:
        """Give the entries of a manifest to `take`; False if they cannot be read."""
        entries = self._entries(manifest, is_new=False)
        try:
            if entries is not None:
                take(entries)
        except _UNREADABLE as error:
            self._not_checked(str(error))
            return False
        return entries is not None

    def _all_entries(self, manifests: Iterable[ManifestFile]) -> list[ManifestEntry] | None:
        """Return the entries of new manifests, or the parent's; None if one cannot be read."""
        found: list[ManifestEntry] = []
        for manifest in manifests:
            entries = self._entries(manifest, is_new=False)
            if entries is None:
                return None
            try:
                found += entries
            except _UNREADABLE as error:
                self._not_checked(str(error))
                return None
        return found

    def _check_dropped(self, lists: Lists) -> None:
        snapshot_id = self._snapshot.snapshot_id
        for content in may_have_dropped(snapshot_id, lists):
            try:
                dropped = dropped_files(self._source, lists, content)
            except (FileMissing, *_UNREADABLE) as error:
                self._not_checked(str(error))
                continue
            if dropped is not None:
                if dropped:
                    self._found_dropped(len(dropped), content, dropped[0], dropped[0])
            elif content is ManifestContent.DATA and (lost := surely_dropped(snapshot_id, lists)):
                count, manifest = lost
                self._found_dropped(count, content, f"those of manifest {manifest}", manifest)
            else:
                self._not_checked(
                    "whether it keeps all files of its parent takes more reading than is allowed"
                )

    def _found_dropped(self, count: int, content: ManifestContent, some: str, file: Location) -> None:
        self._found(
            FindingKind.DROPPED_FILES,
            f"says append, but lacks {count} of the {_FILES[content]} of its parent "
            f"{self._snapshot.parent_snapshot_id}, {some} among them",
            file,
        )

    def _found(self, kind: FindingKind, what: str, file: Location | None) -> None:
        snapshot_id = self._snapshot.snapshot_id
        self.findings.append(Finding(kind, f"snapshot {snapshot_id} {what}", snapshot_id, file))

    def _not_checked(self, reason: str) -> None:
        self.unchecked.append(SkippedCheck(self._snapshot.snapshot_id, reason))


def _entry_problem(manifest: ManifestFile, entry: EntryFacts) -> str | None:
    """Return what is impossible about an entry's sequence numbers.

    Spec: #sequence-number-inheritance
    """
    number = manifest.sequence_number
    for name, found in (("data", entry.data_sequence_number), ("file", entry.file_sequence_number)):
        if found is not None and (found > number or found < 0):
            return f"{name} sequence number {found}, the manifest's own being {number}"
    lowest = entry.data_sequence_number
    if (
        entry.status is not EntryStatus.DELETED
        and lowest is not None
        and lowest < manifest.min_sequence_number
    ):
        return f"data sequence number {lowest}, below the lowest in the manifest list, {manifest.min_sequence_number}"
    return None


def _contradiction(claim: Claim, come: Tally, gone: Tally) -> str:
    found = claim.change(come, gone)
    return (
        f"says {claim.key} {claim.after} after {claim.before}, but its manifests change that by {found}, "
        f"to {claim.before + found}"
    )
