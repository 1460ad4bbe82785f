"""Steps in which nothing is lost: a table dropped and brought back, and yesterday's catalog beside today's."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from examples.flights.pipeline import Pipeline
from examples.flights.spark_session import rest_catalog

WAS = "was"
"""The name under which Spark mounts the past."""


def drop_and_bring_back(pipeline: Pipeline) -> None:
    """Drop a table by mistake, see that it is gone, and bring it back with every row."""
    rows = pipeline.rows("nyc.airports")
    pipeline.sql("DROP TABLE nyc.airports")
    left = {row.tableName for row in pipeline.spark.sql("SHOW TABLES IN nyc").collect()}
    pipeline.narrator.check("airports is among the tables", "airports" in left, False)
    pipeline.icetower("dropped", "list")
    pipeline.icetower("undrop", "nyc.airports")
    pipeline.narrator.check("rows in nyc.airports, brought back", pipeline.rows("nyc.airports"), rows)


def stand_in_the_past(pipeline: Pipeline) -> None:
    """Delete too much, mount the catalog as it was before, join the two, and restore the table."""
    before = pipeline.rows("nyc.planes")
    moment = _moment()
    pipeline.sql("DELETE FROM nyc.planes WHERE year < 2000")
    for key, text in rest_catalog(pipeline.uri, WAS).items():
        pipeline.spark.conf.set(key, text)
    warehouse = f"default@{moment}"
    pipeline.spark.conf.set(f"spark.sql.catalog.{WAS}.warehouse", warehouse)
    pipeline.narrator.say(f"[dim]spark.sql.catalog.{WAS}.warehouse = {warehouse}[/]")
    pipeline.narrator.check("planes in the catalog as it was", pipeline.rows(f"{WAS}.nyc.planes"), before)
    missing = pipeline.number(
        f"SELECT count(*) FROM {WAS}.nyc.planes then LEFT ANTI JOIN nyc.planes now ON then.tailnum = now.tailnum"
    )
    pipeline.narrator.check(
        "planes that were there then and are not now", missing, before - pipeline.rows("nyc.planes")
    )
    pipeline.icetower("diff", warehouse, "default")
    pipeline.icetower("restore", "nyc.planes", "--at", moment, "--yes")
    pipeline.spark.sql("REFRESH TABLE nyc.planes")
    pipeline.narrator.check("planes after the restoration", pipeline.rows("nyc.planes"), before)


def _moment() -> str:
    """Return a time after all that was done so far, once it has passed."""
    then_ms = time.time_ns() // 1_000_000 + 1
    while time.time_ns() // 1_000_000 <= then_ms:
        time.sleep(0.001)
    return (
        datetime.fromtimestamp(then_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )
