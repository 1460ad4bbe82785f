from __future__ import annotations

from app.engine.model.files.manifests import EntryStatus, FileContent
from app.engine.model.ids import Location, SnapshotId
from app.engine.retention.reachability import Expired, FileKind, FoundFile, expired_between, unreachable_files
from app.fileio.locations import place_of
from tests.builders.histories import ListedManifests, branch, entry, history, line

BEFORE = history(line(2), {"main": branch(2)})
AFTER = history(line(2)[1:], {"main": branch(2)})
EXPIRED = expired_between(BEFORE, AFTER)


def source(first: list[str], second: list[str]) -> ListedManifests:
    return ListedManifests({SnapshotId(1): first, SnapshotId(2): second})


def test_entry_that_says_deleted_keeps_nothing() -> None:
    manifests = source(["old"], ["new"])
    manifests.contents = {"old": [entry("f")], "new": [entry("f", EntryStatus.DELETED)]}

    found = unreachable_files(EXPIRED, AFTER, manifests)

    assert [item.location for item in found.content] == ["f"]


def test_entry_that_says_deleted_is_no_candidate() -> None:
    manifests = source(["old"], [])
    manifests.contents = {"old": [entry("f", EntryStatus.DELETED), entry("g")]}

    assert [item.location for item in unreachable_files(EXPIRED, AFTER, manifests).content] == ["g"]


def test_puffin_file_stays_while_one_of_its_vectors_is_live() -> None:
    manifests = source(["old", "gone"], ["new"])
    vector = entry("shared.puffin", content=FileContent.POSITION_DELETES)
    manifests.contents = {
        "old": [vector],
        "gone": [entry("alone.puffin", content=FileContent.POSITION_DELETES)] * 2,
        "new": [vector],
    }

    found = unreachable_files(EXPIRED, AFTER, manifests)

    assert [(item.location, item.kind) for item in found.content] == [
        ("alone.puffin", FileKind.POSITION_DELETES)
    ]


def test_statistics_that_name_a_live_file_do_not_take_it_away() -> None:
    """Writers say where statistics are, and the server has no other source."""
    manifests = source(["m"], ["m"])
    manifests.contents = {"m": [entry("live")]}
    kinds = ("live", "m", str(AFTER.snapshots[0].manifest_list), "alone")
    expired = Expired((), tuple(FoundFile(Location(path), FileKind.STATISTICS) for path in kinds))

    found = unreachable_files(expired, AFTER, manifests)

    assert [item.location for item in found] == ["alone"]


def test_other_spelling_of_a_live_file_is_the_live_file() -> None:
    manifests = source(["/lake/m1", "file:/lake/m2"], ["file:///lake/m2", "/lake/m3"])
    manifests.contents = {
        "/lake/m1": [entry("file:/lake/f"), entry("/lake/g"), entry("file:/lake/g")],
        "/lake/m3": [entry("file:///lake/f")],
    }

    found = unreachable_files(EXPIRED, AFTER, manifests, place_of=place_of)

    assert [item.location for item in found.content] == ["/lake/g"]
    assert [item.location for item in found.manifests] == ["/lake/m1"]


def test_manifest_that_names_a_file_of_the_table_itself_as_data_does_not_doom_it() -> None:
    manifests = source(["old"], ["new"])
    stays = str(AFTER.snapshots[0].manifest_list)
    manifests.contents = {"old": [entry("new"), entry(stays), entry("old")]}

    found = unreachable_files(EXPIRED, AFTER, manifests)

    assert found.content == ()
    assert [item.location for item in found.manifests] == ["old"]


def test_remaining_manifests_are_not_opened_when_no_manifest_goes() -> None:
    manifests = source(["m"], ["m", "n"])
    manifests.broken = {"m", "n"}

    found = unreachable_files(EXPIRED, AFTER, manifests)

    assert [item.kind for item in found] == [FileKind.MANIFEST_LIST]
    assert manifests.reads == 2


def test_table_that_is_purged_keeps_nothing() -> None:
    manifests = source(["m"], ["m"])
    manifests.contents = {"m": [entry("f")]}

    found = unreachable_files(EXPIRED, None, manifests)

    assert [item.location for item in found] == ["f", "m", str(BEFORE.snapshots[0].manifest_list)]


def test_manifests_are_opened_once_however_many_snapshots_share_them() -> None:
    count = 300
    before, after = (
        history(line(count), {"main": branch(count)}),
        history(line(100, count - 99), {"main": branch(count)}),
    )
    names = [f"m{number}" for number in range(count + 1)]
    manifests = ListedManifests(
        # Each snapshot rewrites the oldest of ten manifests.
        {SnapshotId(number): names[max(0, number - 10) : number] for number in range(1, count + 1)},
        {name: [entry(f"f-{name}")] for name in names},
    )

    found = unreachable_files(expired_between(before, after), after, manifests)

    assert len(found.manifests) == len(found.content) == count - 100 - 9
    assert manifests.reads <= count + len(names)
