from __future__ import annotations

from dataclasses import replace

from app.engine.conflicts.detection import detect_conflicts
from app.engine.conflicts.operations import (
    Append,
    Delete,
    Operation,
    Overwrite,
    RemovedFile,
    ReplacePartitions,
    RewriteFiles,
    RewriteManifests,
    RowDelta,
)
from app.engine.conflicts.report import ConflictKind
from app.engine.conflicts.snapshot_operations import operation_of
from app.engine.model.files.manifests import EntryStatus, ManifestEntry
from app.engine.model.ids import SnapshotId, SpecId
from app.engine.model.partition_spec import PartitionSpec
from tests.builders.branches import (
    BY_KIND,
    UNPARTITIONED,
    Branch,
    data_file,
    equality_deletes,
    position_deletes,
    vector,
)

OLD, OTHER = data_file("old", "a"), data_file("other", "b")


def on(branch: Branch, snapshot_id: SnapshotId) -> Operation:
    return operation_of(branch.metadata, branch, branch.metadata.snapshots_by_id[snapshot_id])


def base(format_version: int = 2) -> Branch:
    branch = Branch(format_version=format_version)
    branch.commit("append", [OLD, OTHER])
    branch.opened.clear()
    return branch


def test_append_is_not_even_opened() -> None:
    branch = base()

    assert on(branch, branch.commit("append", [data_file("new", "a")])) == Append()
    assert branch.opened == []


def test_delete_and_overwrite_name_what_they_remove() -> None:
    branch = base()
    deleted = branch.commit("delete", removed=[OLD], is_staged=True)
    overwritten = branch.commit("overwrite", [data_file("new", "a")], [OLD], is_staged=True)
    unknown = branch.commit("vacuum", removed=[OLD], is_staged=True)
    gone = (RemovedFile.of(OLD),)

    assert on(branch, deleted) == Delete(removed_files=gone, checks_existence=True)
    assert on(branch, overwritten) == Overwrite(removed_files=gone, checks_new_deletes=True)
    assert on(branch, unknown) == Overwrite(removed_files=gone, checks_new_deletes=True)


def test_replaced_partitions_are_those_of_the_new_files() -> None:
    branch = base()
    new = data_file("new", "a")
    made = branch.commit("overwrite", [new], [OLD], summary={"replace-partitions": "TRUE"})

    assert on(branch, made) == ReplacePartitions(
        ((new.spec_id, ("a",)),), checks_new_data=True, checks_new_deletes=True
    )


def test_rewrite_with_and_without_a_sequence_number_of_its_own() -> None:
    branch = base()
    compacted = data_file("compacted", "a")
    plain = branch.commit("replace", [compacted], [OLD], is_staged=True)
    kept = branch.commit("replace", [compacted], [OLD], sequence_number=1, is_staged=True)
    only_removed = branch.commit("replace", removed=[OLD], is_staged=True)
    gone = (RemovedFile.of(OLD),)

    assert on(branch, plain) == RewriteFiles(gone)
    assert on(branch, kept) == RewriteFiles(gone, data_sequence_number=1)
    assert on(branch, only_removed) == RewriteFiles(gone)


def with_another_spec() -> Branch:
    branch = base()
    another = branch.metadata.default_spec.replace(spec_id=SpecId(1))
    branch.metadata = branch.metadata.replace(
        partition_specs=(*branch.metadata.partition_specs, another), default_spec_id=another.spec_id
    )
    return branch


def test_deletes_of_one_spec_do_not_reach_files_that_were_moved_to_another() -> None:
    """A compaction keeps the age of its files, but equality deletes apply in their own partitions only."""
    branch = with_another_spec()
    before = branch.head
    moved = branch.commit(
        "replace", [data_file("moved", "a", spec_id=1)], [OLD], sequence_number=1, is_staged=True
    )
    stayed = branch.commit("replace", [data_file("stayed", "a")], [OLD], sequence_number=1, is_staged=True)
    branch.commit("delete", [equality_deletes("deletes", "a")])

    found = {
        made: [
            item.kind
            for item in detect_conflicts(branch.metadata, branch, "main", before, on(branch, made)).conflicts
        ]
        for made in (moved, stayed)
    }

    assert found == {moved: [ConflictKind.NEW_DELETES_FOR_FILE], stayed: []}


def test_deletes_reach_files_that_keep_their_spec_beside_others_that_are_moved() -> None:
    branch = with_another_spec()
    stays = data_file("stays", "b", spec_id=1)
    before = branch.commit("append", [stays])
    new = [data_file("new a", "a", spec_id=1), data_file("new b", "b", spec_id=1)]
    made = branch.commit("replace", new, [OLD, stays], sequence_number=1, is_staged=True)

    def messages() -> list[str]:
        found = detect_conflicts(branch.metadata, branch, "main", before, on(branch, made))
        return [item.message for item in found.conflicts]

    branch.commit("delete", [replace(equality_deletes("deletes of b", "b"), spec_id=SpecId(1))])
    assert messages() == []
    branch.commit("delete", [equality_deletes("deletes of a", "a")])
    assert messages() == [f"Cannot commit, found new delete for replaced data file: {OLD.file_path}"]


def test_deletes_of_an_unpartitioned_spec_reach_files_of_any_spec() -> None:
    branch = Branch(UNPARTITIONED)
    old = replace(data_file("old"), partition=())
    branch.commit("append", [old])
    by_kind = PartitionSpec.from_object({**BY_KIND, "spec-id": 1})
    branch.metadata = branch.metadata.replace(partition_specs=(*branch.metadata.partition_specs, by_kind))
    made = branch.commit("replace", [data_file("new", "a", spec_id=1)], [old], sequence_number=1)

    assert on(branch, made) == RewriteFiles((RemovedFile.of(old),), data_sequence_number=1)


def test_rewritten_manifests_are_those_that_are_gone() -> None:
    branch = base()
    (manifest,) = branch.manifests(branch.metadata.snapshots[0])
    made = branch.commit("replace")
    branch._lists[made] = ()

    assert on(branch, made) == RewriteManifests((manifest.manifest_path,))

    alone = Branch()
    assert on(alone, alone.commit("replace")) == RewriteManifests()


def test_delete_files_make_a_row_delta() -> None:
    branch = base()
    first = [position_deletes("p", "a", of="old"), position_deletes("q", "a"), equality_deletes("e", "a")]
    made = branch.commit("overwrite", first)
    removed = branch.commit("delete", [position_deletes("p2", "a", of="old")], [OLD, first[0]])

    delta = on(branch, made)
    removing = on(branch, removed)

    assert delta == RowDelta(
        conflict_filter=None,
        referenced_files=frozenset({OLD.file_path}),
        checks_deleted_files=True,
        checks_new_deletes=True,
    )
    assert isinstance(removing, RowDelta)
    assert removing.removed_files == (RemovedFile.of(OLD),)
    assert removing.removed_delete_files == (RemovedFile.of(first[0]),)


def test_vectors_are_told_from_other_deletes() -> None:
    branch = base(3)
    delta = on(branch, branch.commit("delete", [vector("v.puffin", "old", "a")]))

    assert isinstance(delta, RowDelta)
    assert delta.vector_targets == delta.referenced_files == frozenset({OLD.file_path})


def test_what_an_earlier_snapshot_removed_is_not_its_own() -> None:
    branch = base()
    made = branch.commit("delete", removed=[OLD])
    path = branch._lists[made][0].manifest_path
    earlier = ManifestEntry(EntryStatus.DELETED, SnapshotId(1), 1, 1, OTHER)
    kept = ManifestEntry(EntryStatus.EXISTING, made, 1, 1, OTHER)
    branch._entries[path] = (*branch._entries[path], earlier, kept)

    assert on(branch, made) == Delete(removed_files=(RemovedFile.of(OLD),), checks_existence=True)
