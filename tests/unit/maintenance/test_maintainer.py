"""The maintainer: plans are carried out job by job, each of them held and noted at the server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import httpx
import pytest

from app.client.catalog import RemoteCatalog
from app.client.http.failures import CatalogRefused
from app.client.request_parts import JsonObject
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.jobs import Job, JobState
from app.maintenance.assignments import Assignment, Ending
from app.maintenance.maintainer import Listener, Maintainer

ORPHANS, MANIFESTS, EXPIRY = Job.REMOVE_ORPHAN_FILES, Job.REWRITE_MANIFESTS, Job.EXPIRE_SNAPSHOTS


@dataclass
class Recorder:
    """Ends each job in the same way, and keeps what it was given."""

    ending: Ending = field(default_factory=lambda: Ending(JobState.DONE, figures={"files": 3}))
    given: list[Assignment] = field(default_factory=list)
    meanwhile: Callable[[Assignment], object] = lambda _assignment: None

    def carry_out(self, assignment: Assignment) -> Ending:
        self.given.append(assignment)
        self.meanwhile(assignment)
        return self.ending


def test_job_is_held_while_it_runs_and_noted_at_its_end(
    catalog: RemoteCatalog, table: TableIdentifier
) -> None:
    states: list[str] = []
    worker = Recorder(meanwhile=lambda _: states.append(catalog.maintenance.jobs(table)[0]["state"]))
    seen: list[object] = []
    listener = Listener(
        lambda _table, job, reason: seen.append((job, reason)),
        lambda _table, report: seen.append(report.ending.state),
    )

    report = Maintainer(catalog, {ORPHANS: worker}, [ORPHANS], listener).maintain(table)

    (assignment,) = worker.given
    (job,) = catalog.maintenance.jobs(table)
    assert states == ["running"]
    assert (assignment.table, assignment.job, assignment.job_id) == (table, ORPHANS, job["id"])
    assert assignment.options == job["options"]
    assert (job["state"], job["outcome"]["files"]) == ("done", 3)
    assert job["outcome"]["seconds"] >= 0
    assert seen == [(ORPHANS, "they were never looked for"), JobState.DONE]
    assert report.is_fine
    assert [done.job for done in report.jobs] == [ORPHANS]


@pytest.mark.parametrize(("going_on", "state"), [([], "unknown"), ([ORPHANS], "running")])
def test_table_of_a_job_that_is_stopped_is_let_go_unless_the_job_goes_on(
    catalog: RemoteCatalog, table: TableIdentifier, going_on: list[Job], state: str
) -> None:
    def stop(_assignment: Assignment) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Maintainer(catalog, {ORPHANS: Recorder(meanwhile=stop)}, [ORPHANS], going_on=going_on).maintain(table)

    (job,) = catalog.maintenance.jobs(table)
    assert job["state"] == state


def test_job_without_worker_is_left_and_said_so(catalog: RemoteCatalog, table: TableIdentifier) -> None:
    report = Maintainer(catalog, {}, [ORPHANS, EXPIRY]).maintain(table)

    assert report.jobs == []
    assert set(report.undone) == {ORPHANS}
    assert report.left == {EXPIRY: "0 snapshots are to expire; 1 or more are worth it"}


def test_table_that_is_held_is_left_alone(catalog: RemoteCatalog, table: TableIdentifier) -> None:
    catalog.maintenance.begin_job(table, EXPIRY, "a" * 32, {}, 60_000)
    worker = Recorder()

    report = Maintainer(catalog, {ORPHANS: worker}, [ORPHANS]).maintain(table)

    assert worker.given == []
    assert not report.is_fine
    assert (report.jobs, report.undone) == ([], {})
    assert "expire-snapshots" in report.stopped
    assert report.left[ORPHANS] == report.stopped
    assert len(catalog.maintenance.jobs(table)) == 1


@pytest.mark.parametrize(
    ("state", "is_fine"),
    [(JobState.NOTHING, True), (JobState.REFUSED, True), (JobState.FAILED, False), (JobState.UNSOUND, False)],
)
def test_failures_make_the_whole_a_failure(
    catalog: RemoteCatalog,
    table: TableIdentifier,
    state: JobState,
    is_fine: bool,
) -> None:
    report = Maintainer(catalog, {ORPHANS: Recorder(Ending(state, "Because."))}, [ORPHANS]).maintain(table)

    assert report.is_fine is is_fine
    assert catalog.maintenance.jobs(table)[0]["outcome"]["message"] == "Because."


def test_damaged_table_is_left_alone_from_then_on(
    catalog: RemoteCatalog, make_table: Callable[..., TableIdentifier]
) -> None:
    table = make_table("t", **{"icetower.maintenance": "recommended"})
    broken = Recorder(Ending(JobState.DAMAGED, "s3://a is not there"))

    Maintainer(catalog, {ORPHANS: broken}).maintain(table)
    found = catalog.maintenance.plan(table)

    assert (found["damage"], found["plan"]) == ("s3://a is not there", [])
    later = Maintainer(catalog, {ORPHANS: Recorder()}).maintain(table)
    assert (later.damage, later.is_fine) == ("s3://a is not there", False)
    Maintainer(catalog, {ORPHANS: Recorder()}, [ORPHANS]).maintain(table)
    assert "damage" not in catalog.maintenance.plan(table)


def test_under_a_policy_a_table_that_another_one_takes_first_is_no_failure(
    catalog: RemoteCatalog, make_table: Callable[..., TableIdentifier]
) -> None:
    table = make_table("t", **{"icetower.maintenance": "recommended"})
    holder = {"is_there": False}

    class Late(Maintainer):
        def plan(self, table: TableIdentifier) -> JsonObject:
            found = super().plan(table)
            if not holder["is_there"]:
                catalog.maintenance.begin_job(table, EXPIRY, "b" * 32, {}, 60_000)
                holder["is_there"] = True
            return found

    report = Late(catalog, {ORPHANS: Recorder()}).maintain(table)

    assert report.is_fine
    assert "expire-snapshots" in report.stopped


def test_after_damage_jobs_are_left_for_that_reason(catalog: RemoteCatalog, table: TableIdentifier) -> None:
    broken = Recorder(Ending(JobState.DAMAGED, "s3://a is not there"))
    wanted = [ORPHANS, Job.TABLE_STATISTICS, EXPIRY]

    report = Maintainer(catalog, {ORPHANS: broken}, wanted).maintain(table)

    assert [done.ending.state for done in report.jobs] == [JobState.DAMAGED]
    assert ORPHANS not in report.undone
    assert ORPHANS not in report.left


def test_after_a_success_the_policy_waits(
    catalog: RemoteCatalog, make_table: Callable[..., TableIdentifier]
) -> None:
    table = make_table("t", **{"icetower.maintenance": "recommended"})
    worker = Recorder()
    maintainer = Maintainer(catalog, {ORPHANS: worker})

    maintainer.maintain(table)
    second = maintainer.maintain(table)

    assert len(worker.given) == 1
    assert second.left[ORPHANS].startswith("it was done a while ago")


def test_all_tables_below_a_place_are_found(
    catalog: RemoteCatalog, namespace: Namespace, make_table: Callable[..., TableIdentifier]
) -> None:
    below = Namespace((*namespace.levels, "b"))
    catalog.namespaces.create(below)
    tables = {make_table("x"), make_table("y"), make_table("x", below)}
    maintainer = Maintainer(catalog, {})

    assert set(maintainer.tables(namespace)) == tables
    assert set(maintainer.tables()) >= tables


def test_a_namespace_that_is_dropped_meanwhile_keeps_no_others_waiting(
    catalog: RemoteCatalog, namespace: Namespace, make_table: Callable[..., TableIdentifier]
) -> None:
    first, second, third = (Namespace((*namespace.levels, name)) for name in "abc")
    for place in (first, second, third):
        catalog.namespaces.create(place)
    before, after = make_table("t", first), make_table("t", third)
    found = Maintainer(catalog, {}).tables(namespace)
    assert next(found) == before

    catalog.namespaces.drop(second)

    assert list(found) == [after]
    with pytest.raises(CatalogRefused, match="does not exist"):
        list(Maintainer(catalog, {}).tables(second))


def test_tables_with_work_come_in_order_and_missing_ones_are_said(
    catalog: RemoteCatalog, make_table: Callable[..., TableIdentifier], namespace: Namespace
) -> None:
    idle, busy = make_table("idle"), make_table("busy", **{"icetower.maintenance": "recommended"})
    gone = TableIdentifier(namespace, "gone")

    maintainer = Maintainer(catalog, {})
    plans, failures = maintainer.in_order(iter([idle, gone, busy]))

    assert [plan["table"] for plan in plans if maintainer.has_work(plan)] == ["busy"]
    assert set(failures) == {gone}


@pytest.mark.parametrize(
    ("state", "figures", "expected"),
    [
        (JobState.DONE, {}, 8 << 20),
        (JobState.LOST, {"rewritten-bytes": 5}, 5),
        (JobState.NOTHING, {}, None),
        (JobState.FAILED, {}, None),
    ],
)
def test_what_a_job_rewrites_counts_for_the_budget_even_if_it_does_not_say_it(
    catalog: RemoteCatalog,
    table: TableIdentifier,
    state: JobState,
    figures: dict[str, int],
    expected: int | None,
) -> None:
    class Large(Maintainer):
        def plan(self, table: TableIdentifier) -> JsonObject:
            found = super().plan(table)
            for planned in found["plan"]:
                planned["rewritten-bytes"] = 8 << 20
            return found

    Large(catalog, {ORPHANS: Recorder(Ending(state, figures=figures))}, [ORPHANS]).maintain(table)

    assert catalog.maintenance.jobs(table)[0]["outcome"].get("rewritten-bytes") == expected


def test_end_that_cannot_be_noted_is_said(catalog: RemoteCatalog, table: TableIdentifier) -> None:
    def end(assignment: Assignment) -> None:
        catalog.maintenance.end_job(table, assignment.job_id, JobState.ABANDONED, {})

    report = Maintainer(catalog, {ORPHANS: Recorder(meanwhile=end)}, [ORPHANS]).maintain(table)

    assert "Its end could not be noted" in report.jobs[0].ending.message


class AwayFor(httpx.BaseTransport):
    """Reaches no server as often as the test says, when the end of a job is sent."""

    def __init__(self, times: int) -> None:
        self.times = times
        self._there = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/end") and self.times:
            self.times -= 1
            raise httpx.ConnectError("Connection refused")
        return self._there.handle_request(request)


def test_end_is_noted_though_the_server_is_started_again_meanwhile(
    server_url: str, make_table: Callable[..., TableIdentifier]
) -> None:
    """Otherwise the lease runs out, and then snapshots expire that a person needs to go back."""
    table = make_table("t", **{"icetower.maintenance": "recommended"})
    changed = Recorder(Ending(JobState.UNSOUND, "ROWS ARE NOT WHAT THEY WERE."))

    with RemoteCatalog(server_url, transport=AwayFor(2)) as catalog:
        report = Maintainer(catalog, {ORPHANS: changed}).maintain(table)

        assert report.jobs[0].ending == changed.ending
        assert catalog.maintenance.jobs(table)[0]["state"] == "unsound"
        assert catalog.maintenance.plan(table)["plan"] == []
