"""`icetower maintain` against a real server."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from app.client.catalog import RemoteCatalog
from app.client.request_parts import JsonObject
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.maintenance.assignments import Assignment
from app.maintenance.catalog_jobs import CatalogJobs
from app.maintenance.maintainer import Maintainer
from tests.unit.cli.conftest import SCHEMA, Icetower


@pytest.fixture
def empty_table(catalog: RemoteCatalog, namespace: str) -> str:
    """A table without files: only its orphans were never looked for."""
    catalog.tables.create(TableIdentifier(Namespace((namespace,)), "empty"), SCHEMA)
    return f"{namespace}.empty"


@pytest.fixture
def wanted(catalog: RemoteCatalog, namespace: str) -> None:
    catalog.namespaces.update_properties(
        Namespace((namespace,)), updates={"icetower.maintenance": "recommended"}
    )


def test_without_a_policy_nothing_is_done(icetower: Icetower, empty_table: str) -> None:
    plan = icetower("maintain", empty_table, "--dry-run")
    done = icetower("maintain", empty_table)

    assert plan.status == done.status == 0
    assert "it is off: icetower.maintenance (default)" in plan.out
    assert done.out == ""
    assert "Nothing is worth doing now" in done.err


@pytest.mark.usefixtures("wanted")
def test_policy_of_a_namespace_is_carried_out_and_reported(
    icetower: Icetower, empty_table: str, namespace: str
) -> None:
    done = icetower("maintain", "--namespace", namespace)
    again = icetower("maintain", "--namespace", namespace, "--json")

    assert done.status == again.status == 0
    assert f"{empty_table}: remove-orphan-files nothing in" in done.err
    (line,) = [line for line in done.out.splitlines() if line.startswith("remove-orphan-files")]
    assert line.split() == ["remove-orphan-files", "nothing"]
    assert again.json == []


def test_jobs_asked_for_by_name_are_done_whatever_the_policy_says(
    icetower: Icetower, empty_table: str
) -> None:
    done = icetower("maintain", empty_table, "--jobs", "remove-orphan-files,expire-snapshots", "--json")

    assert done.status == 0
    (report,) = done.json
    assert [(job["job"], job["state"]) for job in report["jobs"]] == [("remove-orphan-files", "nothing")]
    assert set(report["left"]) == {"expire-snapshots"}


def test_failure_is_the_exit_status(icetower: Icetower, catalog: RemoteCatalog, empty_table: str) -> None:
    namespace, _, name = empty_table.partition(".")
    identifier = TableIdentifier(Namespace((namespace,)), name)
    catalog.maintenance.begin_job(identifier, "expire-snapshots", "c" * 32, {}, 60_000)

    held = icetower("maintain", empty_table, "--jobs", "remove-orphan-files")
    missing = icetower("maintain", f"{namespace}.none")

    assert (held.status, missing.status) == (1, 1)
    assert "expire-snapshots" in held.err
    assert "Table does not exist" in missing.err


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--jobs", ","], "names no job"), (["--watch", "--every", "0s"], "without a pause")],
)
def test_options_that_make_no_sense_are_refused(icetower: Icetower, options: list[str], said: str) -> None:
    refused = icetower("maintain", *options)

    assert refused.status == 2
    assert said in " ".join(refused.err.replace("│", " ").split())


def test_table_is_let_go_when_a_signal_ends_the_command(
    icetower: Icetower, catalog: RemoteCatalog, empty_table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_worker: CatalogJobs, _assignment: Assignment) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patched:
        patched.setattr(CatalogJobs, "carry_out", stop)
        stopped = icetower("maintain", empty_table, "--jobs", "remove-orphan-files")
    again = icetower("maintain", empty_table, "--jobs", "remove-orphan-files")

    assert (stopped.status, again.status) == (130, 0)
    namespace, _, name = empty_table.partition(".")
    jobs = catalog.maintenance.jobs(TableIdentifier(Namespace((namespace,)), name))
    assert [job["state"] for job in jobs] == ["nothing", "unknown"]


@pytest.mark.usefixtures("wanted")
def test_table_that_goes_meanwhile_does_not_keep_the_others_waiting(
    icetower: Icetower,
    catalog: RemoteCatalog,
    namespace: str,
    empty_table: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone = TableIdentifier(Namespace((namespace,)), "a-table-that-goes")
    catalog.tables.create(gone, SCHEMA)
    planned = Maintainer.in_order

    def in_order(
        maintainer: Maintainer, tables: Iterator[TableIdentifier]
    ) -> tuple[list[JsonObject], dict[TableIdentifier, str]]:
        found = planned(maintainer, tables)
        catalog.tables.drop(gone)
        return found

    monkeypatch.setattr(Maintainer, "in_order", in_order)

    done = icetower("maintain", "--namespace", namespace, "--json")

    assert done.status == 1
    assert f"{gone} was left: Table does not exist" in " ".join(done.err.split())
    whole, failed = done.json
    assert (whole["table"], failed["table"]) == (empty_table.rpartition(".")[2], gone.name)
    assert "Table does not exist" in failed["failure"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--jobs", "vacuum"], "'vacuum' is no job"),
        (["a.t", "--namespace", "a"], "not both"),
        (["--watch", "--dry-run"], "--watch goes on for ever"),
        (["--spark", "host:7077"], "Invalid address of Spark 'host:7077'"),
        (["--verify", "all"], "'all' is not one of counts, checksums, off"),
        (["--every", "soon", "--watch"], "'soon' is not a number and a unit"),
    ],
)
def test_wrong_usage_is_said(icetower: Icetower, arguments: list[str], words: str) -> None:
    refused = icetower("maintain", *arguments)

    assert refused.status == 2
    assert words in " ".join(refused.err.split())


@pytest.mark.usefixtures("wanted")
def test_watching_goes_on_until_it_is_stopped(
    icetower: Icetower, empty_table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[float] = []

    def pause(seconds: float) -> None:
        rounds.append(seconds)
        if len(rounds) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("app.cli.maintain.sleep", pause)

    left = icetower("maintain", empty_table, "--watch", "--every", "2m")

    assert (left.status, rounds) == (0, [120, 120])
    assert "Nothing is worth doing now" in left.err
