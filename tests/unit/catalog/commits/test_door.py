from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.catalog import named
from app.catalog.commits.intentions import Intention
from app.catalog.commits.landing import land
from app.catalog.commits.table_commits import TableCommit
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.deletions.expiry import ExpireSnapshots, ExpiryRequest
from app.database.connections.process_turns import ProcessTurns
from app.database.pointers.moves import Advance
from app.engine.change.requirements import AssertRefSnapshotId
from app.engine.change.updates import SetProperties
from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata
from app.engine.retention.expired_snapshots import ExpiryWish
from app.errors import FilesUnavailable, NotAllowed
from app.fileio.files import FileIO
from tests.builders.catalogs import START_MS, with_server
from tests.builders.failing_files import FailingFiles
from tests.builders.tables import DEPARTURES, append, append_to, head, snapshot_on, table_in
from tests.unit.catalog.commits.interference import ARRIVALS, files_in, interfering

Wanted = Intention[TableMetadata, Any]


def setting(key: str) -> TableCommit:
    return TableCommit(DEPARTURES, [], [SetProperties(updates={key: "set"})])


def test_three_values_land_as_one_and_each_gets_its_own_answer(catalog: Catalog) -> None:
    """An append, an expiry and a change of properties: one metadata file, one move of the pointer, three results."""
    before = append_to(catalog, table_in(catalog))
    files = files_in(catalog)
    added = snapshot_on(before.metadata)
    queue: list[Wanted] = [
        TableCommit(DEPARTURES, [AssertRefSnapshotId(ref="main", snapshot_id=head(before).snapshot_id)], append(added)),
        ExpireSnapshots(
            DEPARTURES, ExpiryRequest(ExpiryWish(older_than_ms=START_MS * 2, retain_last=1)), catalog.now_ms()
        ),
        setting("third"),
    ]  # fmt: skip

    appended, expired, changed = land(catalog, queue)

    assert appended.loaded == expired.loaded == changed.loaded
    assert len(files_in(catalog) - files) == 1
    newest = catalog.server.pointers.history(catalog.load(TABLES, DEPARTURES).id, limit=2)
    assert [event.location for event in newest] == [appended.loaded.location, before.location]
    after_all = catalog.read(TABLES, catalog.load(TABLES, DEPARTURES))
    assert after_all == appended.loaded.metadata
    assert after_all.current_snapshot_id == added.snapshot_id
    assert after_all.properties["third"] == "set"
    assert expired.detail is not None
    assert [item.snapshot_id for item in expired.detail.expiry.snapshots] == [head(before).snapshot_id]
    assert [entry.metadata_file for entry in after_all.metadata_log][-1] == before.location


def test_values_are_planned_anew_together_when_somebody_else_wins(catalog: Catalog) -> None:
    table = table_in(catalog)
    other = table_in(catalog, ARRIVALS)
    meddled, pointers = interfering(catalog)
    seen = catalog.load(TABLES, DEPARTURES)
    rival = Location(f"{table.metadata.location}/metadata/00001-rival.metadata.json")
    catalog.files.write_new(rival, table.metadata.replace(properties={"rival": "first"}).to_json())
    pointers.rivals = [[Advance(seen, rival, seen.uuid)]]
    elsewhere = TableCommit(ARRIVALS, [], [SetProperties(updates={"there": "set"})])

    here, there = land(meddled, [setting("here"), elsewhere])

    assert here.loaded.metadata.properties == {"rival": "first", "here": "set"}
    assert here.base.seen is not None
    assert here.base.seen.metadata_location == rival
    assert [entry.metadata_file for entry in there.loaded.metadata.metadata_log] == [other.location]


def test_commit_does_not_land_in_what_has_become_another_catalogs_meanwhile(catalog: Catalog) -> None:
    created = table_in(catalog)
    assert created.location is not None
    to_hand_over = [created.location]

    def step(passed: str) -> None:
        if passed == "before_put" and to_hand_over:
            location = to_hand_over.pop()
            named.register(catalog, TABLES, DEPARTURES, location, overwrite=True, read_only=True)

    racing = with_server(catalog, step=step)

    with pytest.raises(NotAllowed):
        land(racing, [setting("owner")])

    pointer = catalog.load(TABLES, DEPARTURES)
    assert pointer.is_read_only
    assert pointer.metadata_location == created.location


def test_a_commit_that_lost_a_race_asks_other_processes_for_a_turn(catalog: Catalog, tmp_path: Path) -> None:
    """Without that, a process that is a little faster could win every race."""
    table = table_in(catalog)
    meddled, pointers = interfering(with_server(catalog, turns=ProcessTurns(str(tmp_path / "turns"))))
    of_another_process, name = ProcessTurns(str(tmp_path / "turns")), f"{catalog.warehouse.id} {DEPARTURES}"
    seen = catalog.load(TABLES, DEPARTURES)
    rival = Location(f"{table.metadata.location}/metadata/00001-rival.metadata.json")
    catalog.files.write_new(rival, table.metadata.to_json())
    pointers.rivals = [[Advance(seen, rival, seen.uuid)]]
    land(meddled, [setting("here")])
    assert of_another_process.is_asked({name})


def test_a_commit_without_a_rival_asks_for_no_turn(catalog: Catalog, tmp_path: Path) -> None:
    table_in(catalog)
    land(with_server(catalog, turns=ProcessTurns(str(tmp_path / "turns"))), [setting("here")])
    assert not ProcessTurns(str(tmp_path / "turns")).is_asked({f"{catalog.warehouse.id} {DEPARTURES}"})


def test_file_whose_upload_fails_is_discarded_too(catalog: Catalog) -> None:
    """The store may have kept it, though it said otherwise."""
    table_in(catalog)
    before = files_in(catalog)
    store = StoringBeforeFailing(catalog.files)

    with pytest.raises(FilesUnavailable):
        land(with_server(catalog, files_of=lambda _warehouse: store), [setting("lost")])

    assert store.stored
    assert files_in(catalog) == before


class StoringBeforeFailing(FailingFiles):
    """A store whose answer to every write is lost."""

    def __init__(self, files: FileIO) -> None:
        super().__init__(files)
        self.stored: list[Location] = []

    def write_new(self, location: Location, content: bytes) -> None:
        super().write_new(location, content)
        self.stored.append(location)
        raise FilesUnavailable("the answer is lost")
