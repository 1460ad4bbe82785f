"""Jobs and path rewrites on Spark over an S3-compatible store; `scripts/spark-on-s3` runs this."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from pyarrow.fs import FileSelector
from pyiceberg.catalog.rest import RestCatalog

from app.client.catalog import RemoteCatalog
from app.client.http.http_calls import HttpCalls
from app.client.warehouses import WarehouseCalls
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location
from app.engine.model.jobs import Job, JobState
from app.maintenance.maintainer import Maintainer
from app.maintenance.path_rewrite import RewrittenPaths, rewrite_paths
from app.maintenance.spark.spark_sessions import SparkSessions
from app.maintenance.spark_jobs import SparkJobs
from app.maintenance.staged_copies import PathChange
from app.maintenance.verification import Verification
from tests.servers.icetower import icetower_process
from tests.servers.s3 import S3Server

SHOP = Namespace(("shop",))
ON_S3 = {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO"}
CATALOG = "tower"
PROPERTIES = (
    "'write.delete.mode' = 'merge-on-read', 'write.delete.granularity' = 'partition',"
    " 'write.distribution-mode' = 'none', 'history.expire.max-snapshot-age-ms' = '1'"
)
JOBS = (Job.REWRITE_POSITION_DELETES, Job.REWRITE_DATA_FILES, Job.TABLE_STATISTICS)


class Run:
    """One server, one Spark, and what was wrong so far."""

    def __init__(self, uri: str, catalog: RemoteCatalog, sessions: SparkSessions, store: S3Server) -> None:
        self._uri, self._catalog, self._sessions, self._store = uri, catalog, sessions, store
        self._session: Any = sessions.open()
        prefix = f"spark.sql.catalog.{CATALOG}"
        self._session.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
        for key, text in {"type": "rest", "uri": uri, "cache-enabled": "false", **ON_S3}.items():
            self._session.conf.set(f"{prefix}.{key}", text)
        self._sql(f"CREATE NAMESPACE {CATALOG}.shop")
        self.flaws: list[str] = []

    def table(self, name: str, version: int) -> None:
        """Make a table with deletes, do all jobs to it, and rewrite its paths before and after."""
        self._sql(
            f"CREATE TABLE {CATALOG}.shop.{name} (id int, word string) USING iceberg PARTITIONED BY (word)"
            f" TBLPROPERTIES ('format-version' = '{version}', {PROPERTIES})"
        )
        for start in range(3):
            values = f"CAST(id * 3 + {start} AS int), concat('w', id % 2)"
            self._sql(f"INSERT INTO {CATALOG}.shop.{name} SELECT {values} FROM range(200)")
        for start in range(3):
            self._sql(f"DELETE FROM {CATALOG}.shop.{name} WHERE id % 97 = {start}")
        before = self._rows(name)
        self._copy(name, f"{name}_copied", before)
        table = TableIdentifier(SHOP, name)
        worker = SparkJobs(self._sessions.open, self._uri, verify=Verification.CHECKSUMS, confs=ON_S3)
        for job in JOBS:
            for report in Maintainer(self._catalog, {job: worker}, [job]).maintain(table).jobs:
                ending = report.ending
                print(f"{name}: {job} {ending.state} {dict(ending.figures)} {ending.message}")
                self._check(ending.state is JobState.DONE and not ending.message, f"{name}: {job}")
        self._check(self._rows(name) == before, f"{name}: rows after the jobs")
        self._copy(name, f"{name}_copied_wrongly", before, flaw="data-sequence-number")
        # Entries that say `existing` keep their sequence numbers.
        self._catalog.upkeep.remove_dangling_deletes(table)
        self._catalog.upkeep.rewrite_manifests(table, rewrite_all=True)
        self._catalog.tables.expire(table)
        self._copy(name, f"{name}_copied_later", before)

    def _copy(self, name: str, new_name: str, due: list[tuple[Any, ...]], flaw: str | None = None) -> None:
        table = TableIdentifier(SHOP, name)
        here = str(self._catalog.tables.load(table).metadata["location"])
        change = PathChange(here, f"{here.rsplit('/', 1)[0]}/a-place-with-a-longer-name/{new_name}")
        found = rewrite_paths(
            self._catalog, self._sessions.open, table, change, spark_catalog={"uri": self._uri, **ON_S3}
        )
        if flaw is not None:
            said = " ".join(found.copy.flaws) if isinstance(found, RewrittenPaths) else str(found)
            self._check(flaw in said, f"{new_name}: {said}")
            return
        if not isinstance(found, RewrittenPaths) or found.copy.flaws:
            self._check(False, f"{new_name}: {found}")
            return
        print(
            f"{new_name}: {found.copy.files} files, {found.copy.mended} lists mended, {found.iceberg_version}"
        )
        for line in self._read(found.copy.file_list).decode().splitlines():
            source, target = line.split(",")
            with self._store.filesystem().open_output_stream(target.removeprefix("s3://")) as stream:
                stream.write(self._read(Location(source)))
        self._catalog.tables.register(TableIdentifier(SHOP, new_name), found.metadata_location)
        self._check(self._rows(new_name) == due, f"{new_name}: rows of the copy")

    def _read(self, location: Location) -> bytes:
        with self._store.filesystem().open_input_stream(location.removeprefix("s3://")) as stream:
            content: bytes = stream.read()
        return content

    def _check(self, is_right: bool, what: str) -> None:
        if not is_right:
            print(f"  WRONG: {what}")
            self.flaws.append(what)

    def _rows(self, name: str) -> list[tuple[Any, ...]]:
        return sorted(map(tuple, self._sql(f"SELECT * FROM {CATALOG}.shop.{name}")))

    def _sql(self, statement: str) -> list[Any]:
        rows: list[Any] = self._session.sql(statement).collect()
        return rows


class WaitingPurges:
    """A warehouse where purges wait: Spark and PyIceberg leave all files to the server."""

    def __init__(self, uri: str, session: Any, store: S3Server) -> None:
        self._uri, self._session, self._store = uri, session, store
        prefix = "spark.sql.catalog.waiting"
        session.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
        for key, text in {"type": "rest", "uri": uri, "cache-enabled": "false", **ON_S3}.items():
            session.conf.set(f"{prefix}.{key}", text)

    def flaws(self) -> list[str]:
        """Purge two tables, expire snapshots of one, and return what was wrong."""
        found = []
        for name in ("of_spark", "of_pyiceberg"):
            self._sql(f"CREATE TABLE waiting.shop.{name} (id int) USING iceberg")
            for _ in range(2):
                self._sql(f"INSERT OVERWRITE waiting.shop.{name} SELECT CAST(id AS int) FROM range(9)")
        before = self._files()
        self._sql(
            "CALL waiting.system.expire_snapshots(table => 'shop.of_spark', retain_last => 1,"
            " older_than => TIMESTAMP '2100-01-01 00:00:00')"
        )
        self._sql("DROP TABLE waiting.shop.of_spark PURGE")
        RestCatalog("waiting", uri=self._uri).purge_table("shop.of_pyiceberg")
        if not before <= self._files():
            found.append(f"files went: {sorted(before - self._files())}")
        with RemoteCatalog(self._uri) as catalog:
            then = {entry["name"]: entry["then"] for entry in catalog.past.dropped()}
            if then != {"of_spark": "forgotten", "of_pyiceberg": "purged"}:
                found.append(f"what is dropped: {then}")
            for name in then:
                catalog.past.undrop({"namespace": SHOP.levels, "name": name})
        rows = {name: self._sql(f"SELECT count(*) FROM waiting.shop.{name}")[0][0] for name in then}
        return found + [f"rows of {name}: {number}" for name, number in rows.items() if number != 9]

    def _files(self) -> set[str]:
        below = FileSelector("lake", recursive=True)
        return {found.path for found in self._store.filesystem().get_file_info(below) if found.is_file}

    def _sql(self, statement: str) -> list[Any]:
        rows: list[Any] = self._session.sql(statement).collect()
        return rows


def main(jars: Path, folder: Path) -> int:
    folder.mkdir(parents=True)
    listed = ",".join(str(jar) for jar in sorted(jars.glob("*.jar")))
    with S3Server() as store:
        store.create_bucket("lake")
        storage = json.dumps(store.storage)
        places = {"default_warehouse_location": "s3://lake/warehouse", "default_warehouse_storage": storage}
        with (
            icetower_process(folder, **places, default_warehouse_properties=storage) as uri,
            RemoteCatalog(uri) as catalog,
            closing(
                SparkSessions("local[2]", {"spark.driver.memory": "1g", "spark.jars": listed})
            ) as sessions,
        ):
            run = Run(uri, catalog, sessions, store)
            for version in (2, 3):
                run.table(f"kept{version}", version)
            waits = {**store.storage, "icetower.undrop.purge-waits": "true"}
            with closing(HttpCalls(uri)) as calls:
                WarehouseCalls(calls).update("default", updates={"default-properties": waits}, removals={})
            session: Any = sessions.open()
            run.flaws += WaitingPurges(uri, session.newSession(), store).flaws()
    print("All is as it should be." if not run.flaws else f"{len(run.flaws)} things are wrong.")
    return 1 if run.flaws else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
