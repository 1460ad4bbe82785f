"""Steps that change a live table: late corrections, a new column, finer partitions."""

from __future__ import annotations

from pyspark.sql import functions

from examples.flights.loading import NEW_YEARS_EVE
from examples.flights.pipeline import Pipeline

ALL_FLIGHTS = 336_776

# Clocks are written hhmm; a delay is the difference of two of them, brought to the half day around zero.
MINUTES = "(({clock} div 100) * 60 + {clock} % 100)"
DELAY = (
    f"pmod({MINUTES.format(clock='arr_time')} - {MINUTES.format(clock='sched_arr_time')} + 720, 1440) - 720"
)


def merge_late_corrections(pipeline: Pipeline) -> None:
    """Merge flights that landed without a recorded delay, and the day that was reported late."""
    no_delay = "arr_time IS NOT NULL AND arr_delay IS NULL"
    late = pipeline.spark.table("raw_flights").where(f"{NEW_YEARS_EVE} OR ({no_delay})")
    corrected = functions.expr(f"CAST(coalesce(arr_delay, {DELAY}) AS int)")
    late.withColumn("arr_delay", corrected).createOrReplaceTempView("late")
    lacking = pipeline.rows(f"nyc.flights WHERE {no_delay}")
    pipeline.narrator.say(f"{late.count():,} late rows; {lacking} landed flights lack a delay")
    pipeline.sql(
        """
        MERGE INTO nyc.flights f USING late
           ON f.time_hour = late.time_hour AND f.carrier = late.carrier AND f.flight = late.flight
         WHEN MATCHED THEN UPDATE SET f.arr_delay = late.arr_delay
         WHEN NOT MATCHED THEN INSERT *
        """
    )
    pipeline.narrator.check("rows in nyc.flights", pipeline.rows("nyc.flights"), ALL_FLIGHTS)
    pipeline.narrator.check(
        "landed flights without a delay", pipeline.rows(f"nyc.flights WHERE {no_delay}"), 0
    )


def add_a_column(pipeline: Pipeline) -> None:
    """Add a column and fill it for some rows, with position deletes instead of rewritten files."""
    pipeline.sql("ALTER TABLE nyc.flights ADD COLUMN remark string COMMENT 'what went wrong'")
    pipeline.sql(
        """
        ALTER TABLE nyc.flights SET TBLPROPERTIES (
            'write.update.mode' = 'merge-on-read', 'write.delete.mode' = 'merge-on-read')
        """
    )
    diverted = "air_time IS NULL AND dep_time IS NOT NULL"
    expected = pipeline.rows(f"nyc.flights WHERE {diverted}")
    kept = pipeline.files("nyc.flights")
    pipeline.sql(f"UPDATE nyc.flights SET remark = 'diverted' WHERE {diverted}")
    pipeline.narrator.check(
        "rows with a remark", pipeline.rows("nyc.flights WHERE remark = 'diverted'"), expected
    )
    pipeline.narrator.say(
        f"{kept} data files stay as they are; {pipeline.files('nyc.flights', 'delete_files')} small files"
        " say which of their rows were replaced"
    )


def add_a_partition_field(pipeline: Pipeline) -> None:
    """Partition what is written from now on by airport, too; what is there stays where it is."""
    before = pipeline.files("nyc.flights", "files")
    pipeline.sql("ALTER TABLE nyc.flights ADD PARTITION FIELD origin")
    pipeline.narrator.check("files rewritten", pipeline.files("nyc.flights", "files") - before, 0)


def create_a_view(pipeline: Pipeline) -> None:
    """Keep a question in the catalog, and ask it."""
    pipeline.sql(
        """
        CREATE VIEW nyc.delays_by_airline AS
        SELECT a.name, count(*) AS flights, round(avg(f.arr_delay), 1) AS minutes_late
          FROM nyc.flights f JOIN nyc.airlines a ON f.carrier = a.carrier
         GROUP BY a.name
        """
    )
    answer = pipeline.sql("SELECT * FROM nyc.delays_by_airline ORDER BY flights DESC")
    pipeline.narrator.check(
        "flights in the view", sum(row.flights for row in answer), pipeline.rows("nyc.flights")
    )
    for row in answer[:3]:
        pipeline.narrator.say(f"{row.name}: {row.flights:,} flights, {row.minutes_late} minutes late")
