from __future__ import annotations

from dataclasses import replace

import pytest

from app.catalog.context.seen import live_paths
from app.catalog.context.seen.live_paths import LivePaths
from app.engine.model.files.manifests import EntryStatus, FileContent, ManifestContent, ManifestEntry
from app.engine.model.ids import Location, SnapshotId
from app.errors import FileMissing
from tests.builders.histories import ListedManifests, entry, snapshot


@pytest.fixture
def source() -> ListedManifests:
    """Three heads: the second one adds a manifest, the third one merges both and deletes a file."""
    return ListedManifests(
        lists={
            SnapshotId(1): ["m1"],
            SnapshotId(2): ["m2", "m1"],
            SnapshotId(3): ["m3"],
        },
        contents={
            "m1": [entry("/a"), entry("/b")],
            "m2": [entry("/c"), entry("s3://x/d")],
            "m3": [
                entry("/a", EntryStatus.EXISTING),
                entry("/b", EntryStatus.DELETED),
                entry("/c", EntryStatus.EXISTING),
            ],
        },
    )


def live(paths: LivePaths, source: ListedManifests, head: int | None, *wanted: str) -> list[str]:
    found = paths.at("t", source, None if head is None else snapshot(head))
    return sorted(found.among([Location(path) for path in wanted]))


ALL = ("/a", "/b", "/c", "s3://x/d", "/e")


def test_each_head_has_its_own_files_in_whatever_order_heads_come(source: ListedManifests) -> None:
    paths = LivePaths(1 << 20)
    wanted = {None: [], 1: ["/a", "/b"], 2: ["/a", "/b", "/c", "s3://x/d"], 3: ["/a", "/c"]}

    for head in (1, 2, 3, 2, 1, 3, None, 1):
        assert live(paths, source, head, *ALL) == wanted[head], head


def test_only_what_has_changed_is_read(source: ListedManifests) -> None:
    paths = LivePaths(1 << 20)
    live(paths, source, 1, "/e")
    source.reads = 0

    assert live(paths, source, 2, "/e") == []

    assert source.reads == 2  # the list, and the manifest that is new


def test_two_spellings_of_a_place_are_one_file(source: ListedManifests) -> None:
    paths = LivePaths(1 << 20)

    assert live(paths, source, 2, "file:///a", "s3a://x/d") == ["file:///a", "s3a://x/d"]


def test_file_that_is_there_twice_stays_when_one_of_both_goes(source: ListedManifests) -> None:
    paths = LivePaths(1 << 20)
    source.contents["m2"] = [entry("/a")]
    source.lists[SnapshotId(4)] = ["m2"]
    live(paths, source, 2, "/a")

    assert live(paths, source, 4, "/a", "/b") == ["/a"]


def test_what_deletes_are_about_is_known_apart_from_what_is_live(source: ListedManifests) -> None:
    paths = LivePaths(1 << 20)
    source.deletes = {"d1"}
    source.lists[SnapshotId(4)] = ["d1", "m3"]
    source.contents["d1"] = [
        deletes_of("s3://x/d"),
        deletes_of("/c", EntryStatus.DELETED),
        deletes_of(None),
        entry("/equality", content=FileContent.EQUALITY_DELETES),
    ]

    for _ in range(2):
        named = paths.at("t", source, snapshot(4), ManifestContent.DELETES)
        assert named.among([Location(path) for path in ("s3a://x/d", "/c", "/a")]) == ["s3a://x/d"]
        assert live(paths, source, 4, *ALL) == ["/a", "/c"]


def deletes_of(path: str | None, status: EntryStatus = EntryStatus.ADDED) -> ManifestEntry:
    found = entry(f"/deletes/{path}", status, FileContent.POSITION_DELETES)
    return replace(
        found, file=replace(found.file, referenced_data_file=None if path is None else Location(path))
    )


def test_manifest_of_an_older_head_may_be_gone(source: ListedManifests) -> None:
    paths = LivePaths(1 << 20)
    live(paths, source, 2, "/a")
    source.gone |= {"m1", "m2"}

    assert live(paths, source, 3, *ALL) == ["/a", "/c"]


def test_what_could_not_be_read_is_read_again(source: ListedManifests) -> None:
    paths = LivePaths(1 << 20)
    source.gone.add("m2")
    with pytest.raises(FileMissing):
        live(paths, source, 2, "/a")
    source.gone.clear()

    assert live(paths, source, 2, *ALL) == ["/a", "/b", "/c", "s3://x/d"]


def test_table_that_is_too_large_to_be_kept_is_read_each_time(source: ListedManifests) -> None:
    paths = LivePaths(10)

    assert live(paths, source, 2, *ALL) == live(paths, source, 2, *ALL) == ["/a", "/b", "/c", "s3://x/d"]


def test_files_whose_hashes_are_equal_are_told_apart(
    source: ListedManifests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_paths, "hash", lambda _place: 7, raising=False)

    assert live(LivePaths(1 << 20), source, 1, "/a", "/e") == ["/a"]
