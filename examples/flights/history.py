"""Steps on a table's past and its branches: a tag, a branch that is checked before it counts, time travel."""

from __future__ import annotations

from examples.flights.changes import ALL_FLIGHTS
from examples.flights.pipeline import Pipeline

CANCELLED = "dep_time IS NULL"


def tag_the_complete_year(pipeline: Pipeline) -> None:
    """Give the current snapshot a name that keeps it."""
    pipeline.sql("ALTER TABLE nyc.flights CREATE TAG complete_year RETAIN 365 DAYS")


def write_to_a_branch(pipeline: Pipeline) -> None:
    """Take cancelled flights out on a branch; readers see nothing of it until it is published."""
    cancelled = pipeline.rows(f"nyc.flights WHERE {CANCELLED}")
    pipeline.sql("ALTER TABLE nyc.flights CREATE BRANCH audit")
    pipeline.sql(f"DELETE FROM nyc.flights.branch_audit WHERE {CANCELLED}")
    audited = pipeline.rows("nyc.flights VERSION AS OF 'audit'")
    pipeline.narrator.check("rows on the branch", audited, ALL_FLIGHTS - cancelled)
    pipeline.narrator.check("rows in the table", pipeline.rows("nyc.flights"), ALL_FLIGHTS)
    pipeline.sql("CALL system.fast_forward('nyc.flights', 'main', 'audit')")
    pipeline.narrator.check("rows in the table, fast-forwarded", pipeline.rows("nyc.flights"), audited)
    pipeline.sql("ALTER TABLE nyc.flights DROP BRANCH audit")


def travel_in_time(pipeline: Pipeline) -> None:
    """Read the table as it was: by tag, by snapshot and by time."""
    tagged = pipeline.sql("SELECT count(*) FROM nyc.flights VERSION AS OF 'complete_year'")
    pipeline.narrator.check("rows at the tag", tagged[0][0], ALL_FLIGHTS)
    snapshots = pipeline.spark.table("nyc.flights.snapshots")
    first = (
        snapshots.selectExpr("snapshot_id", "string(committed_at) AS at", "summary")
        .orderBy("at")
        .collect()[0]
    )
    by_id = pipeline.sql(f"SELECT count(*) FROM nyc.flights VERSION AS OF {first.snapshot_id}")
    by_time = pipeline.sql(f"SELECT count(*) FROM nyc.flights TIMESTAMP AS OF '{first.at}'")
    loaded = int(first.summary["total-records"])
    pipeline.narrator.check("rows after the first append, by id", by_id[0][0], loaded)
    pipeline.narrator.check("rows after the first append, by time", by_time[0][0], loaded)
