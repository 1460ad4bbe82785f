"""Metadata files of commits that did not land, and that could not be deleted: they go once all is back."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog import named
from app.catalog.commits.landing import land
from app.catalog.commits.table_commits import TableCommit
from app.catalog.context.catalog import Catalog
from app.catalog.context.deletable import LEASE_MS
from app.catalog.context.kinds import TABLES
from app.catalog.deletions.sweeps import take_back_left
from app.database.outcomes.idempotency_keys import IdempotencyClaim
from app.database.outcomes.receipt import CommitReceipt
from app.database.pointers.history import Author
from app.database.pointers.moves import Advance, Creation, Unmoved
from app.database.pointers.pointer import Pointer
from app.database.pointers.pointers import Pointers, PutOutcome
from app.database.pointers.sharing import Claims
from app.engine.change.updates import SetProperties
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.errors import CommitStateUnknown, DatabaseUnavailable, FilesUnavailable
from app.fileio.files import ListedFile
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import Clock, catalog_on, new_warehouse, server_on, with_server
from tests.builders.tables import DEPARTURES, commit_to, load_table, namespace_in, table_in
from tests.e2e.patience import wait_until
from tests.unit.catalog.commits.interference import ARRIVALS, files_in, interfering
from tests.unit.catalog.deletions.test_housekeeping import housekeeping


class AwayPointers(Pointers):
    """Pointers of a database that goes away while a commit is sent."""

    def __init__(self, pointers: Pointers) -> None:
        super().__init__(pointers._database)
        self.goes_away = self.is_away = False

    def check_and_put(
        self,
        changes: Sequence[Advance | Unmoved | Creation],
        author: Author,
        *claims: IdempotencyClaim | None,
        receipts: Sequence[CommitReceipt] = (),
    ) -> PutOutcome:
        if self.goes_away:
            self.goes_away, self.is_away = False, True
        self._check()
        return super().check_and_put(changes, author, *claims, receipts=receipts)

    def claims(
        self, files: Collection[str], folders: Collection[str], pointer_id: int | None = None
    ) -> Claims:
        self._check()
        return super().claims(files, folders, pointer_id)

    def find_locked(self, pointer_id: int) -> Pointer | None:
        self._check()
        return super().find_locked(pointer_id)

    def _check(self) -> None:
        if self.is_away:
            raise DatabaseUnavailable("the database is gone")


class AwayFiles(MemoryFiles):
    """A store that goes away when it is asked to write a file in some folder, and comes back later."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_away_at = "nowhere"
        self.is_away = False
        self.away_in = "nowhere"
        self.refused = 0

    def list_files(self, prefix: Location) -> Iterator[ListedFile]:
        self._check(prefix)
        return super().list_files(prefix)

    def write_new(self, location: Location, content: bytes) -> None:
        self.is_away |= self.goes_away_at in location
        self._check()
        super().write_new(location, content)

    def read(self, location: Location) -> bytes:
        self._check(location)
        return super().read(location)

    def delete(self, location: Location) -> None:
        self._check()
        super().delete(location)

    def come_back(self) -> None:
        self.goes_away_at, self.is_away = "nowhere", False

    def _check(self, location: str = "") -> None:
        if self.is_away or self.away_in in location:
            self.refused += 1
            raise FilesUnavailable("the store is gone")


@pytest.fixture
def store() -> AwayFiles:
    return AwayFiles()


@pytest.fixture
def catalog(tmp_path: Path, store: AwayFiles) -> Catalog:
    """A warehouse with two tables, whose database can go away."""
    made = catalog_on(f"sqlite:///{tmp_path}/icetower.db", store)
    table_in(made)
    table_in(made, ARRIVALS)
    return with_server(made, pointers=AwayPointers(made.server.pointers), now_ms=Clock())


def pointers_of(catalog: Catalog) -> AwayPointers:
    pointers = catalog.server.pointers
    assert isinstance(pointers, AwayPointers)
    return pointers


def changes(*names: TableIdentifier) -> list[TableCommit]:
    wanted = [SetProperties(updates={"lost": "yes"})]
    return [TableCommit(name, [], wanted) for name in names]


def fail_to_commit(catalog: Catalog) -> set[str]:
    """Let the database go away during a transaction over both tables, and return what that left."""
    before = files_in(catalog)
    pointers_of(catalog).goes_away = True
    with pytest.raises(DatabaseUnavailable):
        land(catalog, changes(DEPARTURES, ARRIVALS))
    left = files_in(catalog) - before
    assert len(left) == 2
    return left


def test_what_a_commit_left_goes_when_the_database_is_back(catalog: Catalog) -> None:
    left = fail_to_commit(catalog)

    take_back_left(catalog.server)
    while_away = files_in(catalog)
    pointers_of(catalog).is_away = False
    take_back_left(catalog.server)

    assert left <= while_away
    assert files_in(catalog) == while_away - left
    assert all("lost" not in load_table(catalog, name).metadata.properties for name in (DEPARTURES, ARRIVALS))


def test_what_a_transaction_left_goes_when_the_store_is_back(catalog: Catalog, store: AwayFiles) -> None:
    before = files_in(catalog)
    store.goes_away_at = "arrivals"
    with pytest.raises(FilesUnavailable):
        land(catalog, changes(DEPARTURES, ARRIVALS))

    take_back_left(catalog.server)
    store.come_back()
    left = files_in(catalog) - before
    take_back_left(catalog.server)

    assert len(left) == 1
    assert files_in(catalog) == before


def test_a_store_that_is_away_is_asked_once_for_all_of_its_tables(catalog: Catalog, store: AwayFiles) -> None:
    left = fail_to_commit(catalog)
    pointers_of(catalog).is_away = False
    store.is_away = True

    take_back_left(catalog.server)
    asked = store.refused
    store.come_back()
    take_back_left(catalog.server)

    assert asked == 1
    assert left.isdisjoint(files_in(catalog))


@pytest.mark.parametrize("name", ["departures", "arrivals"])
def test_a_table_whose_store_alone_is_away_keeps_no_other_waiting_for_long(
    catalog: Catalog, store: AwayFiles, name: str
) -> None:
    left = fail_to_commit(catalog)
    pointers_of(catalog).is_away = False
    store.away_in = name

    take_back_left(catalog.server)
    take_back_left(catalog.server)

    assert left & files_in(catalog) == {each for each in left if name in each}


def test_a_server_that_stops_asks_for_nothing(catalog: Catalog) -> None:
    left = fail_to_commit(catalog)
    pointers_of(catalog).is_away = False
    catalog.server.is_stopping.set()

    take_back_left(catalog.server)

    assert left <= files_in(catalog)
    assert len(catalog.server.left_metadata.take()) == 2


def test_the_deletion_of_what_was_left_is_ended(catalog: Catalog) -> None:
    fail_to_commit(catalog)
    pointers_of(catalog).is_away = False

    take_back_left(catalog.server)

    assert catalog.server.file_deletions.counts() == {"done": 2}


def test_what_was_registered_since_stays(catalog: Catalog) -> None:
    (first,) = (each for each in fail_to_commit(catalog) if "departures" in each)
    pointers_of(catalog).is_away = False
    named.register(catalog, TABLES, DEPARTURES, first, overwrite=True)
    commit_to(catalog, SetProperties(updates={"later": "yes"}))

    take_back_left(catalog.server)

    assert first in files_in(catalog)
    named.register(catalog, TABLES, DEPARTURES, first, overwrite=True)


def test_what_another_catalog_goes_on_from_stays(catalog: Catalog, tmp_path: Path) -> None:
    left = fail_to_commit(catalog)
    theirs = new_warehouse(server_on(f"sqlite:///{tmp_path}/theirs.db", catalog.files))
    namespace_in(theirs)
    (taken,) = (each for each in left if "departures" in each)
    named.register(theirs, TABLES, DEPARTURES, taken)
    commit_to(theirs, SetProperties(updates={"theirs": "yes"}))
    pointers_of(catalog).is_away = False

    take_back_left(catalog.server)

    assert left & files_in(catalog) == {taken}


def test_what_was_left_long_ago_is_left_to_the_sweeps(catalog: Catalog) -> None:
    left = fail_to_commit(catalog)
    pointers_of(catalog).is_away = False
    clock = catalog.server.now_ms
    assert isinstance(clock, Clock)
    clock.now_ms += LEASE_MS

    take_back_left(catalog.server)
    take_back_left(replace(catalog.server, now_ms=Clock()))

    assert left <= files_in(catalog)


def test_after_an_unknown_outcome_nothing_goes(catalog: Catalog) -> None:
    meddled, pointers = interfering(catalog)
    pointers.lose_reply = pointers.blind = True
    before = files_in(catalog)
    with pytest.raises(CommitStateUnknown):
        land(meddled, changes(DEPARTURES))
    left = files_in(catalog) - before

    take_back_left(meddled.server)

    assert len(left) == 1
    assert left <= files_in(catalog)


def test_housekeeping_takes_it_back(catalog: Catalog) -> None:
    left = fail_to_commit(catalog)

    with housekeeping(catalog.server):
        pointers_of(catalog).is_away = False
        wait_until(lambda: left.isdisjoint(files_in(catalog)))
