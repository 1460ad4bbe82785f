from __future__ import annotations

from dataclasses import replace

from app.engine.guard.dropped_files import dropped_files, may_have_dropped, surely_dropped
from app.engine.guard.lists import Lists, compare_lists
from app.engine.model.files.manifests import DataFile, FileContent, ManifestContent, ManifestFile
from app.engine.model.ids import Location, SnapshotId
from tests.builders.guarded import ROOT, Manifests, without_counts

PUFFIN = f"{ROOT}/data/vectors.puffin"


def lists(source: Manifests, new: list[ManifestFile], before: list[ManifestFile]) -> Lists:
    return compare_lists(SnapshotId(2), new, before)


def suspects(found: Lists) -> list[ManifestContent]:
    return may_have_dropped(SnapshotId(2), found)


def test_a_manifest_of_another_snapshot_may_carry_over_all_it_has() -> None:
    source = Manifests()
    old = source.manifest("old", 1, ["a", "b"])
    again = source.manifest("again", 1, ["a", "b"])

    assert suspects(lists(source, [again], [old])) == []
    assert suspects(lists(source, [replace(again, added_snapshot_id=SnapshotId(2))], [old])) == [
        ManifestContent.DATA
    ]


def test_data_and_delete_files_do_not_make_up_for_each_other() -> None:
    source = Manifests()
    old = [
        source.manifest("d", 1, ["a"]),
        source.manifest("x", 1, ["b"], content=FileContent.POSITION_DELETES),
    ]
    merged = source.manifest("m", 2, [], ["a", "c"])

    assert suspects(lists(source, [merged], old)) == [ManifestContent.DELETES]


def test_unknown_counts_are_suspect() -> None:
    source = Manifests()
    old = without_counts(source.manifest("old", 1, ["a"]))
    new = source.manifest("new", 2, ["b"])

    assert suspects(lists(source, [new], [old])) == [ManifestContent.DATA]
    assert suspects(lists(source, [old, new], [old])) == []


def test_vectors_in_one_file_are_told_apart_by_where_they_start() -> None:
    source = Manifests()
    old = source.manifest("old", 1, [PUFFIN, PUFFIN], content=FileContent.POSITION_DELETES)
    new = source.manifest("new", 2, [], [PUFFIN], content=FileContent.POSITION_DELETES)

    def vector(file: DataFile, start: int) -> DataFile:
        return replace(file, content_offset=start, content_size_in_bytes=10)

    for manifest in (old, new):
        source.contents[manifest.manifest_path] = [
            replace(entry, file=vector(entry.file, 10 * at))
            for at, entry in enumerate(source.contents[manifest.manifest_path])
        ]
    data = source.manifest("data", 1, ["a"])

    found = dropped_files(source, lists(source, [new, data], [old, data]), ManifestContent.DELETES)

    assert found == [PUFFIN]


def test_where_no_data_is_left_no_delete_file_is_missed() -> None:
    source = Manifests()
    old = source.manifest("old", 1, ["d"], content=FileContent.EQUALITY_DELETES)

    assert dropped_files(source, lists(source, [], [old]), ManifestContent.DELETES) == []


def test_lists_leave_no_doubt_only_where_nothing_was_carried_over() -> None:
    source = Manifests()
    old = [source.manifest("one", 1, ["a", "b"]), source.manifest("two", 1, ["c"])]
    new, merged = source.manifest("new", 2, ["d"]), source.manifest("merged", 2, [], ["a"])
    foreign = source.manifest("foreign", 1, ["a"])
    me = SnapshotId(2)

    assert surely_dropped(me, lists(source, [new], old)) == (3, Location(f"{ROOT}/metadata/one.avro"))
    assert surely_dropped(me, lists(source, [new, merged], old)) is None
    assert surely_dropped(me, lists(source, [new, foreign], old)) is None
    assert surely_dropped(me, lists(source, [new], [without_counts(item) for item in old])) is None
    assert surely_dropped(me, lists(source, [without_counts(new)], old)) is None
