"""All jobs on Spark through a server of Spark Connect; `scripts/spark-connect` runs this."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyspark

from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.jobs import Job, JobState
from app.maintenance.assignments import Assignment, Ending
from app.maintenance.spark.mounted_catalogs import mounted
from app.maintenance.spark.spark_runtime import ICEBERG_EXTENSIONS, iceberg_runtime_jar
from app.maintenance.spark.spark_sessions import SparkSessions
from app.maintenance.spark_jobs import SparkJobs
from app.maintenance.verification import Verification
from app.testing import icetower_catalog

SHOP = Namespace(("shop",))
START_SECONDS = 60
MERGE_ON_READ = "'write.delete.mode' = 'merge-on-read', 'write.delete.granularity' = 'partition'"
DATA, DELETES, STATISTICS = Job.REWRITE_DATA_FILES, Job.REWRITE_POSITION_DELETES, Job.TABLE_STATISTICS
RUNS: list[tuple[str, Job, dict[str, str], JobState]] = [
    ("packed", DATA, {"strategy": "binpack"}, JobState.DONE),
    ("sorted", DATA, {"strategy": "sort", "sort-order": "id DESC NULLS LAST"}, JobState.DONE),
    ("curved", DATA, {"strategy": "sort", "sort-order": "zorder(id, word)"}, JobState.DONE),
    ("holey", DELETES, {}, JobState.DONE),
    ("counted", STATISTICS, {}, JobState.DONE),
    ("packed", DATA, {"min-input-files": "2"}, JobState.NOTHING),
    ("holey", DATA, {"min-input-filez": "2"}, JobState.REFUSED),
    ("holey", DATA, {"where": "no_such_column = 1"}, JobState.REFUSED),
    ("holey", DATA, {"strategy": "sort", "sort-order": "no_such_column"}, JobState.REFUSED),
    ("hurt", DATA, {"min-input-files": "2"}, JobState.DAMAGED),
]
"""Tables, jobs, options, and how each must end."""


@contextmanager
def connect_server(jar: Path, folder: Path) -> Iterator[str]:
    """Run a server of Spark Connect until the block ends; hand out its address."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    home, iceberg = Path(pyspark.__file__).parent, iceberg_runtime_jar()
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.extensions": ICEBERG_EXTENSIONS,
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    command = [
        *(str(home / "bin" / "spark-submit"), "--master", "local[2]", "--driver-memory", "1g"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *("--driver-class-path", f"{jar}:{iceberg}", "--jars", str(iceberg)),
        *(part for key, text in settings.items() for part in ("--conf", f"{key}={text}")),
        "spark-internal",
    ]
    with (folder / "connect.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=os.environ | {"SPARK_HOME": str(home)}, stdout=log, stderr=log
        )
    try:
        _wait_until_it_listens(process, port, folder / "connect.log")
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _wait_until_it_listens(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(f"Spark Connect did not start:\n{log.read_text()[-3000:]}")


def make_tables(session: Any, uri: str) -> None:
    """Make the tables of `RUNS`: ten small files, and four delete files where deletes are merged on read."""
    with mounted(session, TableIdentifier(SHOP, "any"), uuid4().hex, {"uri": uri}) as made:
        shop = made.metadata_table("").split(".")[0] + ".shop"
        session.sql(f"CREATE NAMESPACE {shop}").collect()
        for name in {table for table, *_ in RUNS}:
            session.sql(
                f"CREATE TABLE {shop}.{name} (id int, word string) USING iceberg TBLPROPERTIES"
                f" ('format-version' = '2', 'write.distribution-mode' = 'none', {MERGE_ON_READ})"
            ).collect()
            for start in range(5):
                session.sql(
                    f"INSERT INTO {shop}.{name} SELECT CAST(id * 5 + {start} AS int), concat('w', id) FROM range(2000)"
                ).collect()
        for number in range(4):
            session.sql(f"DELETE FROM {shop}.holey WHERE id % 997 = {number}").collect()
        (hurt,) = session.sql(f"SELECT min(file_path) FROM {shop}.hurt.files").collect()
        Path(str(hurt[0]).removeprefix("file:")).unlink()


def flaw_of(ending: Ending, expected: JobState) -> str | None:
    """Return what is wrong with how a job has ended; None if it is as expected."""
    if ending.state is not expected:
        return f"it is {ending.state}, and {expected} was expected"
    return "it says nothing" if expected is JobState.DONE and not ending.figures else None


def main(jar: Path, folder: Path) -> int:
    folder.mkdir(parents=True)
    flaws = 0
    with (
        icetower_catalog() as uri,
        connect_server(jar, folder) as address,
        closing(SparkSessions(address)) as sessions,
    ):
        make_tables(sessions.open(), uri)
        worker = SparkJobs(sessions.open, uri, verify=Verification.CHECKSUMS)
        for name, job, options, expected in RUNS:
            ending = worker.carry_out(Assignment(TableIdentifier(SHOP, name), job, uuid4().hex, options))
            flaw = flaw_of(ending, expected)
            flaws += flaw is not None
            print(f"{name}: {job} {options or ''} {ending.state} {dict(ending.figures)} {ending.message}")
            if flaw is not None:
                print(f"  WRONG: {flaw}")
    print(f"{len(RUNS) - flaws} of {len(RUNS)} jobs ended as they should.")
    return 1 if flaws else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
