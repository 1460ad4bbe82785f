"""What can go wrong around a rebase: nothing lands twice, nothing that a table uses is deleted."""

from __future__ import annotations

from functools import partial
from threading import Barrier, Event
from typing import Any

import pytest

from app.catalog.commits.door import land_all
from app.catalog.commits.landing import land_one
from app.catalog.commits.wishes import Wish
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.threads.side_work import SideWork
from app.database.pointers.moves import Advance
from app.engine.change.updates import RemoveSnapshots, SetProperties, SetSnapshotRef
from app.engine.model.ids import Location
from app.errors import CommitRefused, CommitStateUnknown, FilesUnavailable
from app.fileio.files import FileIO
from app.formats.manifests.source import ManifestCache
from tests.builders.catalogs import with_server
from tests.builders.counting_files import CountingFiles
from tests.builders.racing_writers import added_by, commit, live_files, rebasing_table, sent, writer
from tests.builders.tables import commit_to, load_table
from tests.builders.writing_engine import Commit
from tests.unit.catalog.commits.interference import files_in, interfering


@pytest.fixture(autouse=True)
def raced(catalog: Catalog) -> None:
    rebasing_table(catalog)
    commit(catalog, writer(catalog).append(["first"]))


def late_append(catalog: Catalog) -> Commit:
    """Return an append that another one overtook."""
    late = writer(catalog).append(["late"])
    commit(catalog, writer(catalog).append(["rival"]))
    return late


def _wait_for(event: Event) -> None:
    assert event.wait(30)


def lists_in(catalog: Catalog) -> set[str]:
    return {name for name in files_in(catalog) if "/snap-" in name}


def test_lost_check_and_put_discards_the_list_and_rebases_anew(catalog: Catalog) -> None:
    late = late_append(catalog)
    before = lists_in(catalog)
    meddled, pointers = interfering(catalog)
    seen = catalog.load(TABLES, sent(late).identifier)
    other = writer(catalog).append(["other"])
    content = other.after.to_json()
    rival = Location(f"{other.after.location}/metadata/00009-rival.metadata.json")
    catalog.files.write_new(rival, content)
    pointers.rivals = [[Advance(seen, rival, seen.uuid)]]

    landed = land_one(meddled, sent(late))

    assert landed.rebase is not None
    assert landed.rebase.onto == other.snapshot.snapshot_id
    assert lists_in(catalog) - before == {
        str(other.snapshot.manifest_list),
        str(landed.rebase.snapshot.manifest_list),
    }
    assert len(live_files(catalog)) == 4


def test_unknown_outcome_keeps_the_list(catalog: Catalog) -> None:
    late = late_append(catalog)
    before = lists_in(catalog)
    meddled, pointers = interfering(catalog)
    pointers.lose_reply = pointers.blind = True

    with pytest.raises(CommitStateUnknown):
        land_one(meddled, sent(late))

    assert len(lists_in(catalog) - before) == 1
    # It had landed: its client asks again, and gets its success.
    assert not commit(catalog, late).changed
    assert len(live_files(catalog)) == 3


def test_lost_reply_to_a_rebase_that_landed_is_a_success(catalog: Catalog) -> None:
    late = late_append(catalog)
    meddled, pointers = interfering(catalog)
    pointers.lose_reply = True

    assert land_one(meddled, sent(late)).rebased


def test_sent_again_after_the_branch_went_back_it_does_nothing(catalog: Catalog) -> None:
    late = late_append(catalog)
    root = late.base.current_snapshot_id
    assert root is not None
    commit(catalog, late)
    commit_to(catalog, SetSnapshotRef(ref_name="main", snapshot_id=root, type="branch"))

    assert not commit(catalog, late).changed
    assert load_table(catalog).metadata.current_snapshot_id == root


def test_sent_again_after_its_snapshot_expired_the_outcome_is_not_known(catalog: Catalog) -> None:
    late = late_append(catalog)
    commit(catalog, late)
    commit(catalog, writer(catalog).append(["last"]))
    commit_to(catalog, RemoveSnapshots(snapshot_ids=(late.snapshot.snapshot_id,)))

    with pytest.raises(CommitStateUnknown):
        commit(catalog, late)

    assert len(live_files(catalog)) == 4


class RefusingLists(CountingFiles):
    """A store that takes no manifest lists."""

    def write_new(self, location: Location, content: bytes) -> None:
        if "/snap-" in location:
            raise FilesUnavailable("the store takes no lists")
        super().write_new(location, content)


def on(catalog: Catalog, files: FileIO, **parts: Any) -> Catalog:
    return with_server(catalog, files_of=lambda _warehouse: files, **parts)


def test_list_that_cannot_be_written_changes_nothing(catalog: Catalog) -> None:
    late = late_append(catalog)
    before, location = files_in(catalog), load_table(catalog).location

    with pytest.raises(FilesUnavailable):
        land_one(on(catalog, RefusingLists(catalog.files)), sent(late))

    assert (files_in(catalog), load_table(catalog).location) == (before, location)
    assert commit(catalog, late).rebased


def test_one_that_the_guard_refuses_leaves_no_list_and_the_next_lands(catalog: Catalog) -> None:
    outside = writer(catalog).append(["memory://elsewhere/data.parquet"])
    sound = late_append(catalog)
    before = lists_in(catalog)
    wishes = [Wish(catalog, [sent(each)]) for each in (outside, sound)]

    land_all(wishes)

    with pytest.raises(CommitRefused, match="outside"):
        wishes[0].results()
    landed = wishes[1].results()[0].rebase
    assert landed is not None
    assert lists_in(catalog) - before == {str(landed.snapshot.manifest_list)}


@pytest.mark.parametrize("cache_bytes", [64 << 20, 0])
def test_guard_finds_the_list_before_it_is_stored_whatever_the_cache_keeps(
    catalog: Catalog, cache_bytes: int
) -> None:
    late = late_append(catalog)

    landed = land_one(on(catalog, catalog.files, manifest_cache=ManifestCache(cache_bytes)), sent(late))

    assert landed.rebased


def test_in_its_turn_nothing_is_read_of_what_was_prepared(catalog: Catalog) -> None:
    """Thirty that wait for each other must not wait for each other's reads."""
    made = [writer(catalog).append([name]) for name in "abcd"]
    files = CountingFiles(catalog.files)
    counted = on(catalog, files)
    wishes = [Wish(counted, [sent(each)]) for each in made]
    for wish in wishes:
        wish.intentions[0].prepare(counted)
    files.forget()

    land_all(wishes)

    assert [wish.results()[0].rebased for wish in wishes] == [False, True, True, True]
    assert not files.read_bytes
    assert live_files(catalog).keys() >= set().union(*(added_by(each, writer(catalog)) for each in made))


def test_those_that_were_not_prepared_are_read_side_by_side(catalog: Catalog) -> None:
    """When there was no thread to prepare them: one after the other would take as long as all of them together."""
    made = [writer(catalog).append([name]) for name in "abcd"]
    meeting = Barrier(3)
    lists = {each.snapshot.manifest_list for each in made[1:]}

    class MeetingFiles(CountingFiles):
        def read_at_most(self, location: Location, max_bytes: int) -> bytes | None:
            if location in lists and not self.read_bytes[location]:
                meeting.wait(30)
            return super().read_at_most(location, max_bytes)

    meeting_there = on(catalog, MeetingFiles(catalog.files))
    wishes = [Wish(meeting_there, [sent(each)]) for each in made]

    land_all(wishes)

    assert [wish.results()[0].rebased for wish in wishes] == [False, True, True, True]


def test_they_are_prepared_though_all_threads_for_writing_are_taken(catalog: Catalog) -> None:
    """Those who write and those who read ahead take no threads from each other."""
    busy, may_end, files = SideWork(1), Event(), CountingFiles(catalog.files)
    writing = busy.start_if_free(partial(_wait_for, may_end))
    late = late_append(catalog)
    wish = Wish(with_server(on(catalog, files), side_work=busy, read_ahead=SideWork(1)), [sent(late)])
    try:
        wish.read_elsewhere()
        while late.snapshot.manifest_list not in files.read_bytes:
            assert writing is not None
            assert not writing.done()
    finally:
        may_end.set()


def test_preparing_reads_nothing_where_nothing_is_asked_for(catalog: Catalog) -> None:
    commit_to(catalog, SetProperties(updates={"icetower.rebase": "off"}))
    late = late_append(catalog)
    files = CountingFiles(catalog.files)

    sent(late).prepare(on(catalog, files))

    assert not [name for name in files.read_bytes if name.endswith(".avro")]


def test_preparing_raises_nothing(catalog: Catalog) -> None:
    late = late_append(catalog)
    assert late.snapshot.manifest_list is not None
    catalog.files.delete(late.snapshot.manifest_list)

    sent(late).prepare(catalog)
