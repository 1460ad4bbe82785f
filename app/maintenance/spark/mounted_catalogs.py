"""A catalog of a Spark session that is one job's own: each of its requests names the job."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from app.client.http.http_calls import checked_url, shown_uri
from app.engine.model.identifiers import TableIdentifier
from app.engine.upkeep.sql_text import quoted
from app.maintenance.spark.spark_sessions import SqlSession
from app.maintenance.spark.spark_sql import ProcedureCall, qualified

JOB_HEADER: Final = "X-Icetower-Job"
_EXACT_TEXT: Final = {
    # Names and filters may hold what looks like a variable, and backslashes.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
}


def rest_properties(uri: str, warehouse: str | None, further: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of Iceberg's REST catalog for a warehouse.

    Its client takes no user in an address: that becomes a header, unless a further property is another address.
    """
    url = checked_url(uri)
    login = b64encode(f"{url.username}:{url.password}".encode()).decode()
    has_login = bool(url.userinfo) and "uri" not in further
    return {
        "uri": shown_uri(uri),
        **({"header.Authorization": f"Basic {login}"} if has_login else {}),
        **({} if warehouse is None else {"warehouse": warehouse}),
        **further,
    }


class MountedTable:
    """A table as a session sees it through the job's own catalog."""

    def __init__(self, session: SqlSession, catalog: str, table: TableIdentifier) -> None:
        self._session = session
        self._catalog = catalog
        self.table = table
        self.is_lost = False
        """Whether Spark does not answer any more: then nothing is set back, since each try may wait for minutes."""

    def call(self, call: ProcedureCall) -> list[dict[str, Any]]:
        """Call a procedure for the table, and return the rows that it answers."""
        return [row.asDict() for row in self._session.sql(call.sql(self._catalog, self.table)).collect()]

    def at(self, snapshot_id: int) -> str:
        """Return the table at a snapshot, as SQL has it after FROM."""
        return f"{qualified(self._catalog, self.table)} VERSION AS OF {snapshot_id}"

    def columns(self, snapshot_id: int) -> list[tuple[str, str]]:
        """Return the columns at a snapshot with their types."""
        schema = self._session.sql(f"SELECT * FROM {self.at(snapshot_id)} LIMIT 0").schema
        return [(column.name, column.dataType.simpleString()) for column in schema.fields]

    def one(self, query: str) -> tuple[Any, ...]:
        """Return the only row of a query."""
        (row,) = self._session.sql(query).collect()
        return tuple(row)

    def function(self, name: str) -> str:
        """Return one of Iceberg's functions, as SQL calls it."""
        return f"{quoted(self._catalog)}.system.{name}"

    def metadata_table(self, name: str) -> str:
        """Return one of Iceberg's metadata tables, as SQL has it after FROM."""
        return qualified(self._catalog, self.table, name)


@contextmanager
def mounted(
    session: SqlSession, table: TableIdentifier, job_id: str, properties: Mapping[str, str]
) -> Iterator[MountedTable]:
    """Let a session see a table through a catalog of a job's own, until the block ends.

    Args:
        session: one that knows Iceberg.
        table: the table.
        job_id: each commit is attributed to this job.
        properties: of an Iceberg REST catalog: `uri`, `warehouse` and more.
    """
    name = f"icetower_{job_id}"
    wanted = {
        "type": "rest",
        # A job must see what is, not what was there half a minute ago.
        "cache-enabled": "false",
        # Plans of a server have no sequence numbers: a rewrite would lose when the rows of version 3 were changed.
        "scan-planning-mode": "client",
        f"header.{JOB_HEADER}": job_id,
        **properties,
    }
    prefix = f"spark.sql.catalog.{name}"
    settings = {prefix: "org.apache.iceberg.spark.SparkCatalog"}
    settings |= {f"{prefix}.{key}": text for key, text in wanted.items()}
    mounted_table = MountedTable(session, name, table)
    try:
        for key, text in (_EXACT_TEXT | settings).items():
            session.conf.set(key, text)
        yield mounted_table
    finally:
        if not mounted_table.is_lost:
            with suppress(Exception):
                for key in settings:
                    session.conf.unset(key)
