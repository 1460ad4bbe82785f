"""Housekeeping beside a store that is stuck: other warehouses do not wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.server import Server
from app.catalog.deletions.housekeeping import BELIEVED_AFTER_MS, LEAP_MS, BelievedTime, keep_house
from app.catalog.tables import purge_table
from app.database.connections.database import Database
from app.database.deletions.file_deletions import FileDeletions
from app.database.deletions.old_rows import OldRows
from app.database.dropped import DroppedThings
from app.database.maintenance_jobs import MaintenanceJobs
from app.database.outcomes.idempotency_keys import IdempotencyKeys
from app.database.statements.batches import never
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.errors import DatabaseUnavailable
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import new_warehouse, server_on
from tests.builders.tables import FLIGHTS, table_in
from tests.e2e.patience import wait_until

DAY_MS = 86_400_000
NAMES = [TableIdentifier(FLIGHTS, f"t{number}") for number in range(3)]


class StuckFiles(MemoryFiles):
    """A store that lets those who delete files wait until it is well."""

    def __init__(self) -> None:
        super().__init__()
        self.is_well = threading.Event()
        self.waiting = threading.Semaphore(0)

    def delete(self, location: Location) -> None:
        self.waiting.release()
        assert self.is_well.wait(60)
        super().delete(location)


@contextmanager
def housekeeping(server: Server) -> Iterator[None]:
    """Keep house until the block ends."""
    stop = threading.Event()
    thread = threading.Thread(target=keep_house, args=(server, stop, 0.05))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        server.has_deletions.set()
        thread.join()


@pytest.fixture
def warehouses(tmp_path: Path) -> Iterator[tuple[Catalog, Catalog, StuckFiles]]:
    """A warehouse whose tables are purged and whose store is stuck, another one that is well, and the stuck store."""
    stuck, well = StuckFiles(), MemoryFiles()
    server = replace(
        server_on(f"sqlite:///{tmp_path}/icetower.db"),
        files_of=lambda warehouse: stuck if warehouse.name == "stuck" else well,
    )
    both = [new_warehouse(server, name, f"memory://{name}") for name in ("stuck", "well")]
    for catalog in both:
        for name in NAMES:
            table_in(catalog, name)
    for name in NAMES:
        purge_table(both[0], name)
    try:
        yield both[0], both[1], stuck
    finally:
        stuck.is_well.set()


def files_left(catalog: Catalog) -> int:
    return len(list(catalog.files.list_files(Location(catalog.warehouse.root_location))))


def test_a_stuck_store_keeps_no_deletions_of_others_waiting(
    warehouses: tuple[Catalog, Catalog, StuckFiles],
) -> None:
    slow, well, store = warehouses

    with housekeeping(slow.server):
        assert store.waiting.acquire(timeout=30)
        for name in NAMES:
            purge_table(well, name)
        wait_until(lambda: files_left(well) == 0)
        before = files_left(slow)
        store.is_well.set()
        wait_until(lambda: files_left(slow) == 0)

    assert before == len(NAMES)


def test_one_entry_of_a_warehouse_is_worked_off_at_a_time(
    warehouses: tuple[Catalog, Catalog, StuckFiles],
) -> None:
    slow, well, store = warehouses

    with housekeeping(slow.server):
        assert store.waiting.acquire(timeout=30)
        purge_table(well, NAMES[0])
        wait_until(lambda: files_left(well) == len(NAMES) - 1)

        assert not store.waiting.acquire(blocking=False)
        store.is_well.set()


def test_where_no_thread_can_be_started_a_purge_is_tried_again(
    warehouses: tuple[Catalog, Catalog, StuckFiles], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, _, store = warehouses
    store.is_well.set()
    start, refused = threading.Thread.start, list[str]()

    def start_later(thread: threading.Thread) -> None:
        if thread.name.startswith("deletions") and not refused:
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_later)

    with housekeeping(slow.server):
        wait_until(lambda: files_left(slow) == 0)

    assert refused


def test_nothing_ends_by_the_own_clock_of_a_server_that_does_not_know_the_databases_time(
    warehouses: tuple[Catalog, Catalog, StuckFiles],
) -> None:
    _, well, store = warehouses
    store.is_well.set()
    server = replace(well.server, now_ms=well.server.file_deletions.now_ms)
    named.drop(replace(well, server=server), TABLES, NAMES[0])
    purge_table(well, NAMES[1])

    with housekeeping(replace(server, now_ms=lambda: server.now_ms() + 40 * DAY_MS)):
        wait_until(lambda: files_left(well) == len(NAMES) - 1)

    assert [entry.name for entry in server.dropped.list(well.warehouse.id, server.now_ms())] == [
        NAMES[0].name
    ]


class StoppedRows(OldRows):
    """Old rows during whose clean-up the server is stopped."""

    def __init__(self, stop: threading.Event) -> None:
        self.stop = stop
        self.was_told = False

    def delete(self, older_than_ms: int, is_stopped: Callable[[], bool] = never) -> int:
        self.stop.set()
        self.was_told = is_stopped()
        return 0


def test_the_clean_up_of_old_rows_is_told_when_the_server_stops(
    warehouses: tuple[Catalog, Catalog, StuckFiles],
) -> None:
    _, well, store = warehouses
    store.is_well.set()
    stop = threading.Event()
    rows = StoppedRows(stop)

    keep_house(replace(well.server, old_rows=rows), stop, 0.05)

    assert rows.was_told


class FailingRows(OldRows):
    """Old rows that cannot be deleted."""

    def __init__(self) -> None:
        self.asked = 0

    def delete(self, older_than_ms: int, is_stopped: Callable[[], bool] = never) -> int:
        self.asked += 1
        raise DatabaseUnavailable("a statement took too long")


class FailingKeys(IdempotencyKeys):
    """Keys that cannot be deleted, by an error of ours."""

    def delete_expired(self, now_ms: int, is_stopped: Callable[[], bool] = never) -> int:
        raise ValueError("unexpected")


class CleanedJobs(MaintenanceJobs):
    """Jobs of which it is known that the old ones were deleted."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.are_cleaned = threading.Event()

    def delete(self, older_than_ms: int, is_stopped: Callable[[], bool] = never) -> int:
        self.are_cleaned.set()
        return super().delete(older_than_ms, is_stopped)


def test_a_step_that_fails_keeps_no_other_waiting(warehouses: tuple[Catalog, Catalog, StuckFiles]) -> None:
    _, well, store = warehouses
    store.is_well.set()
    database = well.server.file_deletions._database
    rows, jobs = FailingRows(), CleanedJobs(database)
    server = replace(
        well.server, old_rows=rows, idempotency_keys=FailingKeys(database), maintenance_jobs=jobs
    )

    with housekeeping(server):
        wait_until(jobs.are_cleaned.is_set)

    assert rows.asked == 1


class EndlessDrops(DroppedThings):
    """What was dropped, and cannot be ended."""

    def end(self, now_ms: int, limit: int = 500) -> int:
        raise DatabaseUnavailable("a statement took too long")


def test_what_cannot_be_ended_keeps_no_deletion_waiting(
    warehouses: tuple[Catalog, Catalog, StuckFiles],
) -> None:
    _, well, store = warehouses
    store.is_well.set()
    server = replace(well.server, dropped=EndlessDrops(well.server.file_deletions._database))
    purge_table(well, NAMES[0])

    with housekeeping(server):
        wait_until(lambda: files_left(well) == len(NAMES) - 1)


class Clocks:
    """A database's clock, and a steady one, in milliseconds."""

    def __init__(self) -> None:
        self.now_ms, self.steady_ms = 1_700_000_000_000, 5_000
        self.believed = BelievedTime(lambda: self.now_ms, lambda: self.steady_ms)

    def find_ms(self, later_ms: int = 0, *, leap_ms: int = 0) -> int | None:
        self.steady_ms += later_ms
        self.now_ms += later_ms + leap_ms
        return self.believed.find_ms()


def test_a_clock_that_leaps_ahead_is_believed_after_an_hour() -> None:
    clocks = Clocks()
    assert clocks.find_ms() == clocks.now_ms
    assert clocks.find_ms(7 * DAY_MS) == clocks.now_ms
    assert clocks.find_ms(10, leap_ms=LEAP_MS) == clocks.now_ms

    assert clocks.find_ms(10, leap_ms=LEAP_MS + 1) is None
    assert clocks.find_ms(BELIEVED_AFTER_MS - 1) is None
    assert clocks.find_ms(1) == clocks.now_ms
    assert clocks.find_ms(10) == clocks.now_ms


@pytest.mark.parametrize("then_ms", [0, -DAY_MS])
def test_a_clock_that_is_set_right_again_is_believed_at_once(then_ms: int) -> None:
    clocks = Clocks()
    assert clocks.find_ms() is not None

    assert clocks.find_ms(10, leap_ms=40 * DAY_MS) is None
    assert clocks.find_ms(10, leap_ms=then_ms - 40 * DAY_MS) == clocks.now_ms


class LeapingDeletions(FileDeletions):
    """The queue on a database whose clock is set ahead."""

    ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


def said(caplog: pytest.LogCaptureFixture) -> set[tuple[str | None, bool]]:
    """Return which threads have said something, and whether it was of a leap."""
    return {(record.threadName, "has leapt" in record.getMessage()) for record in caplog.records}


def test_nothing_that_can_come_back_ends_by_a_leap_of_the_databases_clock(
    warehouses: tuple[Catalog, Catalog, StuckFiles], caplog: pytest.LogCaptureFixture
) -> None:
    _, well, store = warehouses
    store.is_well.set()
    leaping = LeapingDeletions(well.server.file_deletions._database)
    server = replace(well.server, now_ms=well.server.file_deletions.now_ms, file_deletions=leaping)
    named.drop(replace(well, server=server), TABLES, NAMES[0])
    purge_table(well, NAMES[1])

    with housekeeping(server):
        wait_until(lambda: files_left(well) == len(NAMES) - 1)
        leaping.ahead_ms = 40 * DAY_MS
        server.has_deletions.set()
        wait_until(lambda: ("file deletions", True) in said(caplog))

    assert [entry.name for entry in server.dropped.list(well.warehouse.id, server.now_ms())] == [
        NAMES[0].name
    ]
