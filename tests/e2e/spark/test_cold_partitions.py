"""F24: the filter that keeps a rewrite to cold partitions means in Spark what it says."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from app.client.catalog import RemoteCatalog
from app.engine.health.facts import PartitionFacts
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import SpecId
from app.engine.model.jobs import Job, JobState
from app.engine.model.table_metadata import TableMetadata
from app.engine.upkeep.cold_partitions import latest_partitions
from app.maintenance.assignments import Assignment
from app.maintenance.spark_jobs import SparkJobs
from tests.builders.health_facts import file_facts
from tests.servers.spark import Sql, nightly

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("column", "transform", "hot", "cold", "value"),
    [
        (
            "at timestamp",
            "days(at)",
            "TIMESTAMP '2024-03-05 10:30:00Z'",
            "TIMESTAMP '2024-03-04 23:59:59Z'",
            19787,
        ),
        nightly("part string", "part", "'it\\'s'", "NULL", "it's"),
        nightly(
            "at timestamp_ntz", "hours(at)", "TIMESTAMP_NTZ '2024-03-05 10:30:00'", "NULL", 19787 * 24 + 10
        ),
        nightly("day date", "months(day)", "DATE '2024-03-05'", "DATE '2024-02-29'", (2024 - 1970) * 12 + 2),
        nightly("day date", "day", "DATE '2024-03-05'", "DATE '2024-03-06'", 19787),
    ],
)
def test_f24_filter_of_cold_partitions_leaves_the_hot_one_alone(
    sql: Sql,
    sqlite_server: str,
    column: str,
    transform: str,
    hot: str,
    cold: str,
    value: Any,
) -> None:
    sql(f"CREATE TABLE days (id int, {column}) USING iceberg PARTITIONED BY ({transform})")
    for number in range(2):
        sql(f"INSERT INTO days VALUES ({number}, {hot}), ({number}, {cold})")
    table = TableIdentifier(Namespace((sql.namespace,)), "days")
    with RemoteCatalog(sqlite_server) as catalog:
        metadata = TableMetadata.model_validate(catalog.tables.load(table).metadata)
    facts = PartitionFacts(SpecId(0), (value,), 2, 2, 2, 2, 0, 1, newest_sequence=1)
    (found,) = latest_partitions(metadata, file_facts(latest_partitions=(facts,)))
    assert found.others is not None

    options = {"min-input-files": "2", "where": found.others}
    worker = SparkJobs(sql.spark.newSession, sqlite_server)
    ending = worker.carry_out(Assignment(table, Job.REWRITE_DATA_FILES, uuid4().hex, options))

    assert (ending.state, ending.figures["rewritten-data-files-count"]) == (JobState.DONE, 2), ending
    sql("REFRESH TABLE days")
    name = column.split(maxsplit=1)[0]
    assert sql.one(f"SELECT count(*) FROM (SELECT DISTINCT _file FROM days WHERE {name} = {hot})") == 2
