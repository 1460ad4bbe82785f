from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.jobs import Job, JobState
from app.maintenance.assignments import Assignment, Ending
from app.maintenance.maintainer import Maintainer
from app.maintenance.spark.spark_runtime import JavaMissing
from app.maintenance.spark_jobs import SparkJobs, settings_apart
from tests.servers.cut_wire import CutWire

DATA, JOB_ID = Job.REWRITE_DATA_FILES, "ab" * 16


@dataclass
class Settings:
    """Settings of a session."""

    now: dict[str, str] = field(default_factory=dict)
    ever: dict[str, str] = field(default_factory=dict)

    def set(self, key: str, value: str, /) -> None:
        self.now[key] = self.ever[key] = value

    def unset(self, key: str, /) -> None:
        del self.now[key]


@dataclass
class ScriptedSpark:
    """A session that does not know what it is asked."""

    error: Exception
    conf: Settings = field(default_factory=Settings)
    statements: list[str] = field(default_factory=list)

    def sql(self, statement: str, /) -> Any:
        self.statements.append(statement)
        raise self.error


def carried_out(session: ScriptedSpark, uri: str, table: TableIdentifier, **options: str) -> Ending:
    return SparkJobs(lambda: session, uri).carry_out(Assignment(table, DATA, JOB_ID, options))


def test_each_job_has_a_catalog_of_its_own_that_names_it(server_url: str, table: TableIdentifier) -> None:
    session = ScriptedSpark(RuntimeError("no"))
    worker = SparkJobs(lambda: session, server_url, "default", confs={"s3.endpoint": "http://s3"})

    worker.carry_out(Assignment(table, DATA, JOB_ID, {}))

    prefix = f"spark.sql.catalog.icetower_{JOB_ID}"
    (namespace,) = table.namespace.levels
    assert session.statements == [
        f"CALL `icetower_{JOB_ID}`.system.rewrite_data_files(table => '`icetower_{JOB_ID}`.`{namespace}`.`t`')"
    ]
    assert {key.removeprefix(prefix): value for key, value in session.conf.ever.items() if prefix in key} == {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "rest",
        ".uri": server_url,
        ".warehouse": "default",
        ".cache-enabled": "false",
        ".scan-planning-mode": "client",
        ".header.X-Icetower-Job": JOB_ID,
        ".s3.endpoint": "http://s3",
    }
    assert not any(prefix in key for key in session.conf.now)


def test_a_user_in_the_address_is_a_header_for_spark(server_url: str, table: TableIdentifier) -> None:
    """Java's client refuses such an address; what stands before the server may ask for the user."""
    session = ScriptedSpark(RuntimeError("no"))

    carried_out(session, server_url.replace("://", "://anna:s%20cret@"), table)

    prefix = f"spark.sql.catalog.icetower_{JOB_ID}"
    assert session.conf.ever[f"{prefix}.uri"] == server_url
    assert session.conf.ever[f"{prefix}.header.Authorization"] == "Basic YW5uYTpzIGNyZXQ="


def test_refused_options_open_no_session(server_url: str, table: TableIdentifier) -> None:
    session = ScriptedSpark(RuntimeError("no"))

    ending = carried_out(session, server_url, table, branch="b")

    assert (ending.state, session.conf.ever) == (JobState.REFUSED, {})


def test_spark_that_cannot_start_is_a_failure_with_its_sentence(
    server_url: str, table: TableIdentifier
) -> None:
    def missing() -> ScriptedSpark:
        raise JavaMissing("Spark runs on Java, and the PATH has none.")

    ending = SparkJobs(missing, server_url).carry_out(Assignment(table, DATA, JOB_ID, {}))

    assert ending == Ending(JobState.FAILED, "Spark runs on Java, and the PATH has none.")


def test_without_the_server_nothing_is_begun(table: TableIdentifier) -> None:
    session = ScriptedSpark(RuntimeError("no"))

    ending = carried_out(session, "http://127.0.0.1:1", table)

    assert ending.state is JobState.FAILED
    assert ending.message.startswith("Nothing was begun: Cannot reach")
    assert session.statements == []


def test_table_stays_held_after_a_lost_connection_since_spark_may_go_on(
    server_url: str, catalog: RemoteCatalog, make_table: Callable[..., TableIdentifier]
) -> None:
    table = make_table("lost")
    session = ScriptedSpark(ConnectionResetError("reset"))
    worker = SparkJobs(lambda: session, server_url)

    class Planned(Maintainer):
        """Has one job to do, though the table has no files."""

        def plan(self, table: TableIdentifier) -> dict[str, Any]:
            job: dict[str, Any] = {
                "job": DATA.value,
                "reason": "because",
                "options": {},
                "rewritten-bytes": 1,
            }
            others = {**job, "job": Job.REWRITE_POSITION_DELETES.value}
            return {"plan": [job, others], "left": [], "jobs": []}

    workers = {DATA: worker, Job.REWRITE_POSITION_DELETES: worker}
    (report,) = Planned(catalog, workers).maintain(table).jobs

    assert (report.ending.state, report.ending.is_still_at_work) == (JobState.UNKNOWN, True)
    (job,) = catalog.maintenance.jobs(table)
    assert job["state"] == "running"


@pytest.mark.parametrize("is_lost", [True, False])
def test_settings_are_set_back_unless_spark_is_gone_where_each_try_takes_minutes(
    server_url: str, table: TableIdentifier, *, is_lost: bool
) -> None:
    session = ScriptedSpark(ConnectionResetError("reset") if is_lost else RuntimeError("no"))

    carried_out(session, server_url, table)

    assert any("icetower_" in key for key in session.conf.now) is is_lost


def test_unknown_commit_that_no_receipt_knows_has_not_landed(server_url: str, table: TableIdentifier) -> None:
    error = RuntimeError("org.apache.iceberg.exceptions.CommitStateUnknownException: no answer")

    ending = carried_out(ScriptedSpark(error), server_url, table)

    assert (ending.state, ending.message) == (JobState.FAILED, "Its commit has not landed: no answer")


def test_what_has_landed_is_asked_again_while_the_server_is_started_again(
    server_url: str, table: TableIdentifier
) -> None:
    port = urlsplit(server_url).port or 0
    wire = CutWire(port)
    wires, address = [wire], urlsplit(wire.endpoint).port or 0

    class Restarted(ScriptedSpark):
        def sql(self, statement: str, /) -> Any:
            wire.close()
            threading.Timer(0.3, lambda: wires.append(CutWire(port, listen_on=address))).start()
            return super().sql(statement)

    error = RuntimeError("org.apache.iceberg.exceptions.CommitStateUnknownException: no answer")
    ending = carried_out(Restarted(error), wire.endpoint, table)

    assert (ending.state, ending.message) == (JobState.FAILED, "Its commit has not landed: no answer")
    wires[-1].close()


def test_settings_of_catalogs_are_taken_out() -> None:
    assert settings_apart({"spark.a": "1", "catalog.s3.region": "x"}) == (
        {"spark.a": "1"},
        {"s3.region": "x"},
    )
