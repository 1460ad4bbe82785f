"""A maintainer in a process of its own, with a Spark of its own, so that it can be killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.jobs import Job
from app.maintenance.assignments import Worker
from app.maintenance.catalog_jobs import CatalogJobs
from app.maintenance.maintainer import Maintainer
from app.maintenance.spark.spark_sessions import SparkSessions
from app.maintenance.spark_jobs import SparkJobs

LEASE_MS = 2_000


@contextmanager
def maintainer_process(
    uri: str, table: TableIdentifier, log: Path, job: Job = Job.REWRITE_DATA_FILES
) -> Iterator[subprocess.Popen[bytes]]:
    """Let a maintainer do a job in another process; when the block ends, it is killed."""
    command = [
        sys.executable,
        "-m",
        "tests.servers.maintainer",
        uri,
        job,
        *table.namespace.levels,
        table.name,
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=Path(__file__).parents[2], stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def main() -> None:
    uri, wanted, *levels, name = sys.argv[1:]
    spark = SparkSessions("local[2]", {"spark.driver.memory": "1g"})
    job = Job(wanted)
    with RemoteCatalog(uri) as catalog:
        in_catalog = CatalogJobs(lambda job_id: RemoteCatalog(uri, job=job_id))
        worker: Worker = SparkJobs(spark.open, uri) if job.needs_spark else in_catalog
        maintainer = Maintainer(catalog, {job: worker}, [job], lease_ms=LEASE_MS)
        maintainer.maintain(TableIdentifier(Namespace(tuple(levels)), name))
    spark.close()


if __name__ == "__main__":
    main()
