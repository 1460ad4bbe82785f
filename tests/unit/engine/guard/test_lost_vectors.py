"""Deletion vectors that go and leave their data files without one: the deleted rows are back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pytest

from app.engine.guard.arrivals import Arrival
from app.engine.guard.findings import Report
from app.engine.guard.look import look_at
from app.engine.guard.lost_vectors import RemovedVectors
from app.engine.model.files.entry_filters import EntryFacts, entry_facts
from app.engine.model.files.manifests import (
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.settings.guard_settings import FindingKind
from app.engine.model.snapshot import Snapshot
from app.errors import FileMissing
from tests.builders.branches import Branch, data_file, equality_deletes, position_deletes, vector

A, B = data_file("a", "x"), data_file("b", "x")
OF_A, OF_B = vector("both.puffin", "a", "x", 4), vector("both.puffin", "b", "x", 44)
NEW_OF_A = vector("new.puffin", "a", "x")


class Columns(list[ManifestEntry]):
    """Entries that are made when they are asked for, and say how many were."""

    def __init__(self, entries: Iterable[ManifestEntry]) -> None:
        super().__init__(entries)
        self.made = 0

    def facts(self) -> Iterator[EntryFacts]:
        return entry_facts(tuple(self))

    def live_positions(self) -> Sequence[int]:
        raise AssertionError("the guard asks for no partition")

    def entries_at(self, positions: Sequence[int]) -> Iterator[ManifestEntry]:
        self.made += len(positions)
        return (self[at] for at in positions)


class Table(Branch):
    """A branch of a version 3 table with two data files and a deletion vector of each; all can be read."""

    missing: str | None = None
    of_another_snapshot = False
    """Whether entries of removed delete files name another snapshot than the one that removes them."""

    def __init__(self) -> None:
        super().__init__(format_version=3)
        self.columns: list[Columns] = []
        self.commit("append", [A, B])
        self.commit("delete", [OF_A, OF_B])

    def manifests(self, snapshot: Snapshot) -> Sequence[ManifestFile]:
        return [
            replace(
                each,
                min_sequence_number=min(
                    (
                        entry.data_sequence_number or 0
                        for entry in self._entries[each.manifest_path]
                        if entry.is_live
                    ),
                    default=each.sequence_number,
                ),
            )
            for each in super().manifests(snapshot)
        ]

    def entries(self, manifest: ManifestFile) -> Sequence[ManifestEntry]:
        found = super().entries(manifest)
        if any(entry.file.file_path == self.missing for entry in found):
            raise FileMissing(manifest.manifest_path)
        if self.of_another_snapshot and manifest.content is ManifestContent.DELETES:
            found = [
                entry if entry.is_live else replace(entry, snapshot_id=SnapshotId(101)) for entry in found
            ]
        self.columns.append(Columns(found))
        return self.columns[-1]

    def exists(self, location: Location) -> bool:
        return location in self._entries

    def guarded(
        self, operation: str, added: Sequence[DataFile] = (), removed: Sequence[DataFile] = ()
    ) -> Report:
        """Commit, and look at what came."""
        made = self.commit(operation, added, removed)
        snapshot = self.metadata.snapshots_by_id[made]
        assert snapshot.parent_snapshot_id is not None
        parent = self.metadata.snapshots_by_id[snapshot.parent_snapshot_id]
        self.opened.clear()
        return look_at(Arrival(snapshot, parent, is_root=False), self.metadata, self, lambda _: True)


@pytest.mark.parametrize("operation", ["delete", "overwrite", "replace"])
def test_vectors_that_only_shared_a_file_with_the_replaced_one_are_lost(operation: str) -> None:
    report = Table().guarded(operation, [NEW_OF_A], [OF_A, OF_B])

    (finding,) = report.findings
    assert finding.kind is FindingKind.LOST_DELETES
    assert finding.file == B.file_path
    assert finding.message == (
        "snapshot 102 removes deletion vectors of b, which stays, and adds no others: the rows that they delete would "
        "be back"
    )


def test_entries_that_name_the_snapshot_which_added_the_vectors_say_so_as_well() -> None:
    """DuckDB writes them so where another engine has added the vectors."""
    table = Table()
    table.of_another_snapshot = True

    report = table.guarded("delete", [NEW_OF_A], [OF_A, OF_B])

    assert [(finding.kind, finding.file) for finding in report.findings] == [
        (FindingKind.LOST_DELETES, B.file_path)
    ]


def test_all_that_are_lost_are_counted() -> None:
    (finding,) = Table().guarded("delete", removed=[OF_A, OF_B]).findings

    assert (
        "removes deletion vectors of 2 data files that stay, a among them, and adds no others"
        in finding.message
    )


@pytest.mark.parametrize(
    ("added", "removed", "why"),
    [
        ([NEW_OF_A], [OF_A], "it was replaced"),
        ([], [A, OF_A], "its file went with it"),
        ([data_file("c", "x")], [A, B, OF_A, OF_B], "a compaction took both files"),
        ([NEW_OF_A, data_file("c", "x")], [OF_A, OF_B, B], "one was replaced, one went with its file"),
        ([NEW_OF_A], [], "nothing went"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_sound_removals(added: Sequence[DataFile], removed: Sequence[DataFile], why: str) -> None:
    assert Table().guarded("overwrite", added, removed) == Report(), why


def test_vectors_of_files_that_had_gone_before_may_go() -> None:
    table = Table()
    table.commit("delete", removed=[A, B])

    assert table.guarded("replace", removed=[OF_A, OF_B]) == Report()


def test_vector_that_is_older_than_its_file_does_not_apply_to_it() -> None:
    """As where a file went, and came back by `add_files`."""
    table = Table()
    table.commit("delete", removed=[A])
    table.commit("append", [A])

    assert table.guarded("replace", removed=[OF_A]) == Report()


@pytest.mark.parametrize("other", [position_deletes("p", "x", of="a"), equality_deletes("e", "x")])
def test_other_delete_files_may_have_been_merged(other: DataFile) -> None:
    """What they delete may stand in others, which only their rows could say."""
    table = Table()
    table.commit("delete", [other])

    assert table.guarded("replace", removed=[other]) == Report()


def test_manifests_of_data_are_opened_only_where_vectors_went_without_their_files() -> None:
    table = Table()

    table.guarded("delete", [NEW_OF_A], [OF_A])

    assert table.opened == [Location("memory://wh/t/metadata/102-m0.avro")] * len(table.opened)


def test_vectors_that_stay_as_they_were_are_not_made_into_objects() -> None:
    """Java writes the manifest of a replaced vector anew, with thousands of others."""
    table = Table()

    assert table.guarded("delete", [NEW_OF_A], [OF_A]) == Report()
    assert sum(columns.made for columns in table.columns) == 2


def test_data_that_is_newer_is_not_opened_for_vectors_whose_files_had_gone() -> None:
    """As where Java drops deletes that are older than all data."""
    table = Table()
    table.commit("delete", removed=[A, B])
    newer = table.commit("append", [data_file("c", "x")])

    assert table.guarded("replace", removed=[OF_A, OF_B]) == Report()
    assert Location(f"memory://wh/t/metadata/{newer}-m0.avro") not in table.opened


def test_new_vectors_are_looked_at_before_the_data_of_the_same_commit() -> None:
    table, gone = Table(), data_file("c", "x")
    table.commit("append", [gone])

    assert table.guarded("overwrite", [NEW_OF_A], [gone, OF_A]) == Report()
    data, vectors = (Location(f"memory://wh/t/metadata/103-m{position}.avro") for position in (0, 1))
    assert table.opened.count(data) == 1
    assert table.opened.count(vectors) > 1


def test_files_that_cannot_be_read_leave_it_open() -> None:
    table = Table()
    table.missing = A.file_path

    report = table.guarded("delete", [NEW_OF_A], [OF_A, OF_B])

    assert report.findings == ()
    assert [skipped.snapshot_id for skipped in report.unchecked] == [SnapshotId(102)]


def test_vectors_that_another_snapshot_removed_are_not_its_own() -> None:
    """A manifest that is carried over still says what went when it was written."""
    table = Table()
    table.commit("delete", [NEW_OF_A], [OF_A, OF_B])

    assert table.guarded("append", [data_file("c", "x")]) == Report()


OF_DATA, OF_DELETES = reversed(Table().manifests(Table().metadata.snapshots[-1]))
"""Its manifests."""


def entry(file: DataFile, status: EntryStatus, *, by: int = 102, number: int = 2) -> ManifestEntry:
    return ManifestEntry(status, SnapshotId(by), number, number, file)


def suspecting() -> RemovedVectors:
    """Return what snapshot 102 removes where that is the vector of one file."""
    vectors = RemovedVectors(SnapshotId(102))
    vectors.suspect(OF_DELETES, [entry(OF_A, EntryStatus.DELETED)])
    assert vectors.suspects == {A.file_path: 2}
    return vectors


def test_file_that_is_newer_than_its_vector_may_lie_beside_older_ones() -> None:
    live = [entry(B, EntryStatus.EXISTING, number=1), entry(A, EntryStatus.ADDED, number=3)]

    assert suspecting().convict(live) == []
    assert suspecting().convict([*live, entry(A, EntryStatus.EXISTING)]) == [A.file_path]


def test_vector_that_was_moved_into_another_manifest_is_still_there() -> None:
    vectors = suspecting()

    vectors.clear(OF_DELETES, [entry(OF_B, EntryStatus.EXISTING), entry(OF_A, EntryStatus.EXISTING)])

    assert vectors.suspects == {}


def test_file_goes_with_its_vector_only_if_this_snapshot_removes_it() -> None:
    vectors = suspecting()

    vectors.clear(OF_DATA, [entry(A, EntryStatus.DELETED, by=101)])
    assert vectors.suspects == {A.file_path: 2}
    vectors.clear(OF_DATA, [entry(A, EntryStatus.DELETED)])
    assert vectors.suspects == {}


def test_what_a_manifest_of_another_snapshot_says_of_removed_vectors_is_not_looked_at() -> None:
    """As in one that a cherry-pick brings along."""
    vectors = RemovedVectors(SnapshotId(102))
    removed = list(entry_facts([entry(OF_A, EntryStatus.DELETED)]))

    vectors.note(replace(OF_DELETES, added_snapshot_id=SnapshotId(101)), removed)
    assert vectors.left == []
    own = replace(OF_DELETES, added_snapshot_id=SnapshotId(102))
    vectors.note(own, removed)
    assert vectors.left == [own]


def test_manifest_without_live_files_has_none_that_lost_its_vector() -> None:
    assert suspecting().may_stay_in(OF_DATA)
    assert not suspecting().may_stay_in(replace(OF_DATA, added_files_count=0, existing_files_count=0))
