"""`icetower maintain`: does what tables need, once or on and on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from functools import partial
from time import sleep
from typing import Annotated, Any

import typer

from app.cli.health_lines import size_text
from app.cli.terminal.arguments import (
    duration_from,
    identifier_from,
    namespace_from,
    properties_from,
    written,
)
from app.cli.terminal.connection import chosen_uri, chosen_warehouse, connected
from app.cli.terminal.options import AsJson, Separator, Uri, Warehouse, chosen, optional
from app.cli.terminal.output import print_json, print_line, remark, warn
from app.cli.terminal.rendering import print_table, shown_progress
from app.cli.terminal.signals import ended_as_by_ctrl_c
from app.client.http.failures import CallFailed, CatalogRefused
from app.client.request_parts import JsonObject
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.jobs import SUCCEEDED, Job, JobState
from app.maintenance.assignments import Worker
from app.maintenance.catalog_jobs import CatalogJobs
from app.maintenance.maintainer import JobReport, Listener, Maintainer, TableReport
from app.maintenance.spark.spark_sessions import REMOTE, SparkSessions
from app.maintenance.spark_jobs import SparkJobs, settings_apart
from app.maintenance.verification import Verification

LONGEST_REQUEST_S = 3600.0
"""A server that rewrites a million manifests' entries answers when it is done."""
_ON_SPARK = "Jobs that move data"
_FIGURES: Sequence[tuple[str, str, str]] = (
    ("data files", "files", "data-files"),
    ("small files", "files", "small-files"),
    ("bytes", "files", "data-bytes"),
    ("delete files", "files", "delete-files"),
    ("data manifests", "manifests", "data-manifests"),
    ("delete manifests", "manifests", "delete-manifests"),
    ("snapshots", "metadata", "snapshots"),
    ("metadata bytes", "metadata", "metadata-bytes"),
)
"""What a report compares: a name, and where the answer about health has it."""


def maintain(  # noqa: PLR0917 - a command has as many arguments as it has options
    name: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="One table; all of the warehouse unless given.")
    ] = None,
    namespace: Annotated[
        str | None, optional("--namespace", help="All tables of this namespace and those below it.")
    ] = None,
    jobs: Annotated[
        str | None,
        optional(
            "--jobs",
            metavar="JOB,JOB",
            help="Only these jobs, whatever the policy says: without thresholds, windows and pauses.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done and why, and stop.")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Go on until Ctrl+C.")] = False,
    once: Annotated[
        bool, typer.Option("--once", help="Look at each table once, and end. The default.")
    ] = False,
    spark: Annotated[
        str | None,
        optional(
            "--spark",
            metavar="URL",
            help="Where Spark is: `local[*]`, `spark://…` or `sc://…`. Without it these jobs are left.",
            panel=_ON_SPARK,
        ),
    ] = None,
    spark_conf: Annotated[
        list[str] | None,
        optional(
            "--spark-conf",
            metavar="KEY=VALUE",
            help="A setting of Spark, or catalog.KEY=VALUE: a property of its catalog. Repeatable.",
            panel=_ON_SPARK,
        ),
    ] = None,
    verify: Annotated[
        Verification,
        chosen(
            "--verify",
            among=tuple(Verification),
            help="What is read to find out whether rows are what they were: their number, or all columns too.",
            panel=_ON_SPARK,
        ),
    ] = Verification.COUNTS,
    every: Annotated[str, typer.Option("--every", help="With --watch: the pause between two rounds.")] = "5m",
    uri: Uri = None,
    warehouse: Warehouse = None,
    separator: Separator = ".",
    as_json: AsJson = False,
) -> None:
    """Keep tables healthy: do what their policies ask for and their health makes worth doing.

    Policies are properties of tables, namespaces and warehouses: `icetower.maintenance=recommended` does the right
    thing. Tables that save most files for their cost come first. The exit status is 1 if a job failed.

    For example:

    - `icetower maintain --dry-run`
    - `icetower maintain eu.sales.orders --jobs expire-snapshots,rewrite-manifests`
    - `icetower maintain eu.sales.orders --spark 'local[*]'`
    - `icetower maintain --namespace eu --watch --every 10m`
    """
    if name is not None and namespace is not None:
        raise typer.BadParameter("give a table or --namespace, not both")
    if watch and (once or dry_run):
        raise typer.BadParameter("--watch goes on for ever: leave out --once and --dry-run")
    table = None if name is None else identifier_from(name, separator)
    place = None if namespace is None else namespace_from(namespace, separator)
    wanted, pause_s = _jobs_from(jobs), duration_from(every)
    if watch and not pause_s:
        raise typer.BadParameter(f"--every {every}: without a pause the server would be asked all the time")
    open_catalog = partial(connected, uri, warehouse, patience_seconds=LONGEST_REQUEST_S)
    in_catalog = CatalogJobs(lambda job_id: open_catalog(job=job_id))
    workers: dict[Job, Worker] = {job: in_catalog for job in Job if not job.needs_spark}
    with ExitStack() as opened:
        opened.enter_context(ended_as_by_ctrl_c())
        if spark is not None:
            of_spark, of_catalog = settings_apart(properties_from(spark_conf))
            sessions = opened.enter_context(closing(SparkSessions(spark, of_spark)))
            on_spark = SparkJobs(
                sessions.open,
                chosen_uri(uri),
                chosen_warehouse(warehouse),
                verify=verify,
                confs=of_catalog,
            )
            workers |= {job: on_spark for job in Job if job.needs_spark}
        catalog = opened.enter_context(connected(uri, warehouse))
        # A server of Spark Connect works on when its client has gone.
        is_remote = spark is not None and spark.startswith(REMOTE)
        going_on = [job for job in Job if job.needs_spark and is_remote]
        maintainer = Maintainer(catalog, workers, wanted, going_on=going_on)

        def work() -> bool:
            tables = maintainer.tables(place) if table is None else iter([table])
            if dry_run:
                return _show_plans(maintainer, tables, separator, as_json=as_json)
            return _round(maintainer, tables, separator, as_json=as_json)

        if watch:
            _watch(work, pause_s)
        elif not work():
            raise typer.Exit(1)


def _jobs_from(text: str | None) -> list[Job]:
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    if text is not None and not names:
        raise typer.BadParameter(f"--jobs names no job: they are {', '.join(Job)}")
    known = {job.value for job in Job}
    for name in names:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is no job: they are {', '.join(Job)}")
    return [Job(name) for name in names]


def _watch(work: Any, pause_s: float) -> None:
    with suppress(KeyboardInterrupt):
        while True:
            try:
                work()
            except CallFailed as failure:
                warn(f"This round was broken off: {failure}")
            sleep(pause_s)


def _show_plans(
    maintainer: Maintainer, tables: Iterator[TableIdentifier], separator: str, *, as_json: bool
) -> bool:
    found, failures = _planned(maintainer, tables, separator)
    for plan in () if as_json else found:
        print_line(f"{written(_table_of(plan), separator)}:")
        rows = [
            *([job["job"], "do", job["reason"], *_cost(job)] for job in plan["plan"]),
            *([job["job"], "leave", job["reason"], "", ""] for job in plan["left"]),
        ]
        print_table(["job", "", "why", "files fewer", "rewritten"], rows)
    if as_json:
        print_json([*found, *_failures_json(failures)])
    elif not found and not failures:
        remark("There are no tables.")
    return not failures


def _planned(
    maintainer: Maintainer, tables: Iterator[TableIdentifier], separator: str
) -> tuple[list[JsonObject], dict[TableIdentifier, str]]:
    """Return the plans in their order; say which tables could not be planned."""
    plans, failures = maintainer.in_order(tables)
    for unseen, failure in failures.items():
        warn(f"{written(unseen, separator)} could not be looked at: {failure}")
    return plans, failures


def _table_of(plan: JsonObject) -> TableIdentifier:
    return TableIdentifier(Namespace(tuple(plan["namespace"])), plan["table"])


def _failures_json(failures: Mapping[TableIdentifier, str]) -> list[JsonObject]:
    return [
        {"namespace": list(table.namespace.levels), "table": table.name, "failure": failure}
        for table, failure in failures.items()
    ]


def _cost(job: JsonObject) -> list[object]:
    return [job["files"], size_text(job["rewritten-bytes"])]


def _round(
    maintainer: Maintainer, tables: Iterator[TableIdentifier], separator: str, *, as_json: bool
) -> bool:
    found, failures = _planned(maintainer, tables, separator)
    plans = [plan for plan in found if maintainer.has_work(plan)]
    if not plans and not failures:
        if as_json:
            print_json([])
        else:
            remark("Nothing is worth doing now: --dry-run says why.")
        return True
    reports = []
    with shown_progress(len(plans)) as progress:
        maintainer.listener = Listener(
            lambda table, job, _reason: progress.say(f"{written(table, separator)}: {job}"),
            lambda table, report: _job_line(written(table, separator), report),
        )
        for plan in plans:
            table = _table_of(plan)
            progress.advance()
            try:
                reports.append(maintainer.maintain(table))
            except CallFailed as failure:
                failures[table] = str(failure)
                warn(f"{written(table, separator)} was left: {failure}")
                if isinstance(failure, CatalogRefused):
                    # It was dropped meanwhile, or cannot be read any more: the others are still to be done.
                    continue
                break  # The server does not answer any more.
            _show_report(reports[-1], separator, as_json=as_json)
    if as_json:
        print_json([*map(_report_json, reports), *_failures_json(failures)])
    return not failures and all(report.is_fine for report in reports)


def _job_line(table: str, report: JobReport) -> None:
    ending = report.ending
    line = f"{table}: {report.job} {ending.state} in {report.seconds:.1f}s. {ending.message}".rstrip()
    if ending.state in SUCCEEDED:
        remark(line)
    else:
        warn(line.upper() if ending.state is JobState.UNSOUND else line)


def _show_report(report: TableReport, separator: str, *, as_json: bool) -> None:
    if report.damage:
        warn(f"{written(report.table, separator)} is damaged, and nothing is done to it: {report.damage}")
    for finding in report.after["findings"]:
        if finding["code"] == "waiting-deletions":
            warn(f"{written(report.table, separator)}: {finding['message']}")
    if as_json:
        return
    for job, reason in report.undone.items():
        remark(f"{written(report.table, separator)}: {job} is left: {reason}")
    if report.stopped:
        remark(f"{written(report.table, separator)}: the rest is left: {report.stopped}")
    if not report.jobs:
        return
    print_line(f"{written(report.table, separator)}, {report.seconds:.1f}s:")
    rows = [
        [name, _number(report.before, part, key), _number(report.after, part, key)]
        for name, part, key in _FIGURES
    ]
    print_table(["", "before", "after"], [row for row in rows if row[1] is not None])
    print_table(
        ["job", "outcome", "figures"],
        [[job.job, job.ending.state, _figures(job.ending.figures)] for job in report.jobs],
    )


def _figures(figures: Mapping[str, Any]) -> str:
    return ", ".join(f"{value} {name}" for name, value in figures.items() if value)


def _number(health: JsonObject, part: str, key: str) -> object:
    found = health.get(part, {})
    if key == "delete-files":
        kinds = ("position-delete-files", "equality-delete-files", "deletion-vectors")
        return sum(found.get(kind, 0) for kind in kinds)
    return found.get(key)


def _report_json(report: TableReport) -> JsonObject:
    return {
        "namespace": list(report.table.namespace.levels),
        "table": report.table.name,
        "seconds": round(report.seconds, 3),
        "before": {name: _number(report.before, part, key) for name, part, key in _FIGURES},
        "after": {name: _number(report.after, part, key) for name, part, key in _FIGURES},
        "jobs": [
            {
                "job": job.job,
                "id": job.job_id,
                "reason": job.reason,
                "state": job.ending.state,
                "seconds": round(job.seconds, 3),
                **job.ending.outcome(),
            }
            for job in report.jobs
        ],
        "undone": dict(report.undone),
        "left": dict(report.left),
        **({"damage": report.damage} if report.damage else {}),
    }
