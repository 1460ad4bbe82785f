"""Planning scans: at once, in tasks that any server expands, and in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.catalog.context.catalog import Catalog
from app.catalog.context.threads.scan_workers import AT_MOST, ScanWorkers
from app.catalog.scans import planning as scans
from app.catalog.scans.planning import (
    LEASE_MS,
    Cancelled,
    Completed,
    Failed,
    ScanPage,
    Submitted,
    cancel_plan,
    fetch_plan,
)
from app.engine.change.updates import AddSchema, RemoveSnapshots, SetCurrentSchema
from app.engine.expressions.expression_json import parse_expression
from app.engine.model.data_types.types import NestedField, parse_primitive
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import FieldId, Location, SchemaId, SnapshotId
from app.engine.scan.scan_scope import ScanRequest
from app.errors import InvalidFilter, InvalidRequest, NoSuchPlan, NoSuchPlanTask, Unavailable
from app.formats.manifests.source import ManifestCache
from tests.builders.catalogs import (
    Clock,
    new_warehouse,
    server_on,
    with_rules,
    with_server,
)
from tests.builders.commits import commit_table
from tests.builders.other_stores import moved_to_another_store
from tests.builders.planned_scans import expand_task, files_of, names, page_of, plan_scan
from tests.builders.tables import DEPARTURES, FLIGHTS, load_table, table_in

EVERYTHING = ScanRequest()
OTHER = TableIdentifier(FLIGHTS, "other")


def everything(catalog: Catalog, page: ScanPage) -> list[str]:
    """Return the names of a page's files and of those of its tasks, as deep as they go."""
    found = names(page)
    for token in page.tasks:
        found += everything(catalog, expand_task(catalog, DEPARTURES, token))
    return found


ALL = ["a0", "a1", "a2", "b0", "b1", "b2", "c0", "c1", "c2"]


@pytest.mark.usefixtures("filled")
def test_short_plan_is_answered_at_once(catalog: Catalog) -> None:
    page = page_of(plan_scan(catalog, DEPARTURES, EVERYTHING))

    assert names(page) == ALL
    assert page.tasks == []


def test_table_without_data_is_planned(catalog: Catalog) -> None:
    table_in(catalog)

    page = page_of(plan_scan(catalog, DEPARTURES, EVERYTHING))

    assert (names(page), page.tasks) == ([], [])


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("size", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("filter_", [True, {"type": "gt-eq", "term": "id", "value": 0}])
def test_long_plan_is_left_to_tasks_and_none_is_lost(catalog: Catalog, size: int, filter_: Any) -> None:
    small = with_rules(catalog, scan_page_files=size)

    page = page_of(plan_scan(small, DEPARTURES, ScanRequest(filter=parse_expression(filter_))))

    assert page.tasks
    assert len(files_of(page)) <= size
    assert sorted(everything(small, page)) == ALL


@pytest.mark.usefixtures("filled")
def test_nothing_is_read_to_split_up_a_plan_without_a_filter(catalog: Catalog) -> None:
    small = with_rules(catalog, scan_page_files=3)

    page = page_of(plan_scan(small, DEPARTURES, EVERYTHING))

    assert names(page) == []
    pages = [expand_task(small, DEPARTURES, token) for token in page.tasks]
    assert [names(each) for each in pages] == [["a0", "a1", "a2"], ["b0", "b1", "b2"], ["c0", "c1", "c2"]]


@pytest.mark.usefixtures("filled")
def test_tasks_are_expanded_again_and_again_at_once_and_by_another_server(
    catalog: Catalog, tmp_path: Path
) -> None:
    small = with_rules(catalog, scan_page_files=2)
    page = page_of(plan_scan(small, DEPARTURES, EVERYTHING))
    other = replace(catalog, server=server_on(f"sqlite:///{tmp_path}/icetower.db", catalog.files))
    servers = [small, with_rules(other, scan_page_files=2)] * 4

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda server: sorted(everything(server, page)), servers))

    assert found == [ALL] * 8


def test_tasks_read_the_snapshot_that_was_planned(catalog: Catalog, filled: list[SnapshotId]) -> None:
    small = with_rules(catalog, scan_page_files=2)

    page = page_of(plan_scan(small, DEPARTURES, ScanRequest(snapshot_id=filled[1])))

    assert sorted(everything(small, page)) == ALL[:6]


def test_range_has_what_was_appended_after_its_start(catalog: Catalog, filled: list[SnapshotId]) -> None:
    request = ScanRequest(start_snapshot_id=filled[0], end_snapshot_id=filled[2])

    whole = page_of(plan_scan(catalog, DEPARTURES, request))
    small = with_rules(catalog, scan_page_files=2)
    in_tasks = page_of(plan_scan(small, DEPARTURES, request))

    assert sorted(names(whole)) == ALL[3:]
    assert sorted(everything(small, in_tasks)) == ALL[3:]


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(("rows", "manifests_read"), [(0, 0), (1, 1), (3, 1), (4, 2), (7, 3), (100, 3)])
def test_plan_stops_when_its_files_surely_have_enough_rows(
    catalog: Catalog, rows: int, manifests_read: int
) -> None:
    page = page_of(plan_scan(catalog, DEPARTURES, ScanRequest(min_rows=rows)))

    assert len(files_of(page)) == 3 * manifests_read
    assert page.tasks == []


@pytest.mark.usefixtures("filled")
def test_rows_that_may_not_match_do_not_count_as_enough(catalog: Catalog) -> None:
    filter_ = parse_expression({"type": "gt", "term": "id", "value": 1})

    page = page_of(plan_scan(catalog, DEPARTURES, ScanRequest(min_rows=1, filter=filter_)))

    assert len(files_of(page)) == 9


@pytest.mark.usefixtures("filled")
def test_unknown_snapshot_is_a_mistake_of_the_request(catalog: Catalog) -> None:
    with pytest.raises(InvalidRequest):
        plan_scan(catalog, DEPARTURES, ScanRequest(snapshot_id=SnapshotId(5)))


class Workers(ScanWorkers):
    """Plans when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Callable[[], None]] = []

    def start(self, warehouse: str, work: Callable[[], None], keep_alive: Callable[[], bool]) -> None:
        self.waiting.append(work)


SOME = ScanRequest(filter=parse_expression({"type": "gt-eq", "term": "id", "value": 0}))


@pytest.fixture
def slow(catalog: Catalog) -> Catalog:
    """A catalog that plans whatever has to be read in the background, three files a task."""
    return with_server(
        with_rules(catalog, scan_submit_bytes=0, scan_page_files=3),
        scan_workers=Workers(),
        now_ms=Clock(),
        manifest_cache=ManifestCache(0),
    )


def work(catalog: Catalog) -> None:
    assert isinstance(catalog.server.scan_workers, Workers)
    for plan in catalog.server.scan_workers.waiting:
        plan()


@pytest.mark.usefixtures("filled")
def test_plan_with_much_to_read_is_made_in_the_background(slow: Catalog) -> None:
    submitted = plan_scan(slow, DEPARTURES, SOME)
    assert isinstance(submitted, Submitted)

    assert fetch_plan(slow, DEPARTURES, submitted.plan_id) == submitted
    work(slow)
    for _ in range(2):
        page = fetch_plan(slow, DEPARTURES, submitted.plan_id)
        assert isinstance(page, ScanPage)
        assert names(page) == []
        assert sorted(everything(slow, page)) == ALL


@pytest.mark.usefixtures("filled")
def test_plan_that_is_given_up_is_not_made(slow: Catalog) -> None:
    submitted = plan_scan(slow, DEPARTURES, SOME)
    assert isinstance(submitted, Submitted)

    for _ in range(2):
        cancel_plan(slow, DEPARTURES, submitted.plan_id)
    work(slow)

    assert fetch_plan(slow, DEPARTURES, submitted.plan_id) == Cancelled()
    cancel_plan(slow, DEPARTURES, "no plan at all")


@pytest.mark.usefixtures("filled")
def test_plan_whose_server_died_has_failed(slow: Catalog) -> None:
    submitted = plan_scan(slow, DEPARTURES, SOME)
    assert isinstance(submitted, Submitted)
    assert isinstance(slow.server.now_ms, Clock)

    slow.server.now_ms.now_ms += LEASE_MS

    for _ in range(2):
        found = fetch_plan(slow, DEPARTURES, submitted.plan_id)
        assert isinstance(found, Failed)
        assert found.error == "Unavailable"
    work(slow)
    assert isinstance(fetch_plan(slow, DEPARTURES, submitted.plan_id), Failed)


@pytest.mark.usefixtures("filled")
def test_plan_that_cannot_be_made_says_why(slow: Catalog) -> None:
    submitted = plan_scan(slow, DEPARTURES, SOME)
    assert isinstance(submitted, Submitted)
    metadata = load_table(slow, DEPARTURES).metadata
    files = slow.files
    for listed in list(files.list_files(Location(f"{metadata.location}/metadata"))):
        if "-m" in listed.location:
            files.delete(listed.location)

    work(slow)

    found = fetch_plan(slow, DEPARTURES, submitted.plan_id)
    assert isinstance(found, Failed)
    assert found.error == "FileMissing"


@pytest.mark.usefixtures("filled")
def test_plan_is_known_to_its_table_and_for_a_time(slow: Catalog) -> None:
    submitted = plan_scan(slow, DEPARTURES, SOME)
    assert isinstance(submitted, Submitted)
    assert isinstance(slow.server.now_ms, Clock)
    table_in(slow, OTHER)

    for identifier, plan_id in ((OTHER, submitted.plan_id), (DEPARTURES, "\0"), (DEPARTURES, "0" * 36)):
        with pytest.raises(NoSuchPlan):
            fetch_plan(slow, identifier, plan_id)
    slow.server.now_ms.now_ms += slow.rules.scan_plan_lifetime_ms
    with pytest.raises(NoSuchPlan):
        fetch_plan(slow, DEPARTURES, submitted.plan_id)


@pytest.mark.usefixtures("filled")
def test_plan_of_a_server_that_died_before_the_clock_was_set_back_has_failed(slow: Catalog) -> None:
    submitted = plan_scan(slow, DEPARTURES, SOME)
    assert isinstance(submitted, Submitted)
    assert isinstance(slow.server.now_ms, Clock)

    slow.server.now_ms.now_ms -= 10 * LEASE_MS

    assert isinstance(fetch_plan(slow, DEPARTURES, submitted.plan_id), Failed)


@pytest.mark.usefixtures("filled")
def test_server_that_stops_lets_its_plans_fail(slow: Catalog) -> None:
    submitted = plan_scan(slow, DEPARTURES, SOME)
    assert isinstance(submitted, Submitted)

    slow.server.scan_workers.stop()
    work(slow)

    assert isinstance(fetch_plan(slow, DEPARTURES, submitted.plan_id), Failed)


def test_workers_run_plans_and_stop() -> None:
    workers, done = ScanWorkers(), threading.Event()

    workers.start("wh", done.set, lambda: True)

    assert done.wait(10)
    workers.stop(10)
    assert workers.is_stopping
    with pytest.raises(Unavailable):
        workers.start("wh", done.set, lambda: True)


def test_only_so_many_plans_may_wait() -> None:
    workers, go_on = ScanWorkers(), threading.Event()

    def wait() -> None:
        go_on.wait(30)

    for _ in range(AT_MOST // 2):
        workers.start("wh", wait, lambda: True)
    with pytest.raises(Unavailable):
        workers.start("wh", wait, lambda: True)
    go_on.set()
    workers.stop(10)


def test_plans_of_one_warehouse_that_hang_leave_room_for_another_ones() -> None:
    workers, go_on, done = ScanWorkers(), threading.Event(), threading.Event()

    def wait() -> None:
        go_on.wait(30)

    for _ in range(AT_MOST // 2):
        workers.start("slow", wait, lambda: True)
    workers.start("quick", done.set, lambda: True)

    assert done.wait(10)
    go_on.set()
    workers.stop(10)


@pytest.mark.usefixtures("filled")
def test_warehouse_of_another_name_has_other_tables(catalog: Catalog) -> None:
    small = with_rules(catalog, scan_page_files=2)
    token = page_of(plan_scan(small, DEPARTURES, EVERYTHING)).tasks[0]
    second = new_warehouse(catalog.server, "second", "memory://second")
    table_in(second)

    with pytest.raises(NoSuchPlanTask):
        expand_task(second, DEPARTURES, token)


def test_answer_is_written_once_until_the_table_moves(catalog: Catalog, filled: list[SnapshotId]) -> None:
    small = with_rules(catalog, scan_page_files=2)
    written: list[ScanPage] = []

    def write(page: ScanPage) -> bytes:
        written.append(page)
        return b"%d" % len(written)

    def ask(request: ScanRequest = EVERYTHING) -> bytes:
        outcome = scans.plan_scan(small, DEPARTURES, request, write)
        assert isinstance(outcome, Completed)
        return outcome.content

    assert [ask(), ask(), ask(SOME), ask(ScanRequest(stats_fields=("id",)))] == [b"1", b"1", b"2", b"3"]
    token = written[0].tasks[0]
    tasks = [scans.expand_task(small, DEPARTURES, token, write) for _ in range(2)]
    assert tasks == [b"4", b"4"]
    commit_table(catalog, DEPARTURES, [], [RemoveSnapshots(snapshot_ids=(filled[0],))])
    assert ask() == b"5"


@pytest.mark.usefixtures("filled")
def test_filters_that_are_one_to_python_are_not_answered_alike(catalog: Catalog) -> None:
    def ask(value: Any) -> ScanRequest:
        return ScanRequest(filter=parse_expression({"type": "eq", "term": "id", "value": value}))

    assert ask(1) == ask(True)  # which is why this has to be looked at
    scans.plan_scan(catalog, DEPARTURES, ask(1), lambda _: b"{}")

    with pytest.raises(InvalidFilter):
        scans.plan_scan(catalog, DEPARTURES, ask(True), lambda _: b"{}")


def test_each_completed_plan_has_an_id_of_its_own(catalog: Catalog) -> None:
    table_in(catalog)

    outcomes = [scans.plan_scan(catalog, DEPARTURES, EVERYTHING, lambda _: b"{}") for _ in range(2)]

    assert len({outcome.plan_id for outcome in outcomes}) == 2


@pytest.mark.usefixtures("filled")
def test_page_with_a_long_filter_has_few_files(catalog: Catalog) -> None:
    """The filter stands beside each file: five times seven megabytes are enough for an answer."""
    filter_ = parse_expression({"type": "not-eq", "term": "carrier", "value": "x" * (7 << 20)})

    page = page_of(plan_scan(catalog, DEPARTURES, ScanRequest(filter=filter_)))

    assert len(files_of(page)) == 4
    assert len(page.tasks) <= 2
    assert sorted(everything(catalog, page)) == ALL


@pytest.mark.usefixtures("filled")
def test_plan_of_one_store_is_no_answer_for_another(catalog: Catalog) -> None:
    """The storage of a warehouse may be changed: what was read before is of the other store."""

    def answer(of: Catalog) -> bytes:
        found = scans.plan_scan(of, DEPARTURES, EVERYTHING, lambda page: " ".join(names(page)).encode())
        assert isinstance(found, Completed)
        return found.content

    assert answer(catalog).decode().split() == ALL

    moved = moved_to_another_store(catalog)

    assert answer(moved).decode().split() == ALL[:3]
    assert answer(catalog).decode().split() == ALL


@pytest.mark.usefixtures("filled")
def test_page_with_a_long_name_of_a_column_has_few_files(catalog: Catalog) -> None:
    """Asked for by its id, the column stands beside each file with its name."""
    schema = load_table(catalog).metadata.current_schema
    longest = NestedField(id=FieldId(90), name="x" * (7 << 20), required=False, type=parse_primitive("int"))
    wider = schema.replace(fields=(*schema.fields, longest))
    commit_table(
        catalog, DEPARTURES, (), [AddSchema(schema_=wider), SetCurrentSchema(schema_id=SchemaId(-1))]
    )
    filter_ = parse_expression({"type": "is-null", "term": {"type": "reference", "id": 90}})

    page = page_of(plan_scan(catalog, DEPARTURES, ScanRequest(filter=filter_)))

    assert len(files_of(page)) == 4
    assert sorted(everything(catalog, page)) == ALL
