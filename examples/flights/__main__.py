"""Runs the demo from the first step to the last; the exit status says whether every number was right."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

from app.maintenance.spark.spark_runtime import IcebergRuntimeMissing, JavaMissing, check_java
from examples.flights import changes, history, loading, past, tour, upkeep
from examples.flights.comparison import compare
from examples.flights.narration import Narrator, Unexpected
from examples.flights.pipeline import Pipeline
from examples.flights.server import Server, ServerNotReady, clear, icetower
from examples.flights.source_files import unpack
from examples.flights.spark_session import open_session, rest_catalog

Step = tuple[str, Callable[[Pipeline], None]]

STEPS: tuple[Step, ...] = (
    ("A namespace and five tables, four of them partitioned", loading.create_tables),
    ("Planes, weather and airports loaded", loading.load_small_tables),
    ("A year of flights loaded, all but New Year's Eve", loading.load_flights),
    ("Late corrections merged", changes.merge_late_corrections),
    ("A column added, and filled for a few rows without rewriting files", changes.add_a_column),
    ("Partitions made finer, for what comes from now on", changes.add_a_partition_field),
    ("A tag on the complete year", history.tag_the_complete_year),
    ("A branch written, checked, and published by fast-forward", history.write_to_a_branch),
    ("Time travel", history.travel_in_time),
    ("The catalog asked what has changed", tour.look_at_history),
    ("A branch moved through the catalog alone", tour.move_a_branch),
    ("Commits rehearsed: would they land, would they conflict?", tour.rehearse_a_commit),
    ("A scan planned by the server", tour.let_the_server_plan),
    ("A view", changes.create_a_view),
    ("A table dropped by mistake, and brought back", past.drop_and_bring_back),
    ("The catalog as it was, beside the catalog as it is", past.stand_in_the_past),
    ("The table's health, before", upkeep.look_at_health),
    ("What it needs, done by icetower maintain; its health, after", upkeep.maintain),
    ("Old snapshots expired, their files deleted", upkeep.expire_snapshots),
)


def main() -> int:
    """Run the demo; answer the exit status."""
    parser = argparse.ArgumentParser(prog="python -m examples.flights", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(".demo"), help="emptied first; default: .demo")
    folder: Path = parser.parse_args().folder.absolute()
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    try:
        check_java()
        run(console, folder)
    except (JavaMissing, IcebergRuntimeMissing, ServerNotReady, Unexpected) as error:
        console.print(f"\n[bold red]The demo failed.[/] {error}")
        return 1
    return 0


def run(console: Console, folder: Path) -> None:
    """Start a server and Spark, run every step, compare what three engines read, and say how to go on.

    Raises:
        ServerNotReady: the server did not come up.
        IcebergRuntimeMissing: Iceberg's jar for Spark is not installed.
        Unexpected: a number was not what it has to be.
    """
    started = time.monotonic()
    narrator = Narrator(console, len(STEPS) + 3)
    with ExitStack() as running:
        with narrator.step("Icetower on SQLite and a local folder"):
            clear(folder)
            server = running.enter_context(icetower(folder))
            narrator.say(f"{server.uri}, tables in {folder / 'warehouse'}")
        with narrator.step("A Spark session that knows it as its catalog"):
            settings = rest_catalog(server.uri)
            for key, text in settings.items():
                narrator.say(f"[dim]{key} = {text}[/]")
            spark = open_session(settings, folder / "spark")
            running.callback(spark.stop)
            pipeline = Pipeline(spark, narrator, unpack(folder / "raw"), server.uri)
        for title, step in STEPS:
            with narrator.step(title):
                step(pipeline)
        with narrator.step("The same tables read by PyIceberg and DuckDB"):
            compare(spark, server.uri, folder / "duckdb", narrator)
        _summarize(console, spark, time.monotonic() - started)
    _say_how_to_go_on(console, server)


def _summarize(console: Console, spark: SparkSession, seconds: float) -> None:
    commits = spark.sql("SELECT count(*) FROM nyc.flights.metadata_log_entries").collect()[0][0]
    tables = spark.sql("SHOW TABLES IN nyc").count()
    console.print(
        f"\n[bold green]All numbers agree.[/] {tables} tables and a view, {commits} versions of nyc.flights,"
        f" in {seconds:.0f} s."
    )


def _say_how_to_go_on(console: Console, server: Server) -> None:
    settings = server.settings_file
    if settings.is_relative_to(Path.cwd()):
        settings = settings.relative_to(Path.cwd())
    console.print("\nThe server has stopped, its tables are kept. To start it again:\n")
    console.print(f"  ICETOWER_CONFIG={settings} make serve", soft_wrap=True)
    console.print(f"\nThen, at [bold]{server.uri}[/]:")
    snippets = {
        "Spark": (
            "spark.sql.catalog.tower=org.apache.iceberg.spark.SparkCatalog\n"
            "spark.sql.catalog.tower.type=rest\n"
            f"spark.sql.catalog.tower.uri={server.uri}"
        ),
        "PyIceberg": (
            "from pyiceberg.catalog import load_catalog\n"
            f'tower = load_catalog("tower", type="rest", uri="{server.uri}")\n'
            'tower.load_table("nyc.flights").scan(limit=5).to_arrow()'
        ),
        "DuckDB": (
            "INSTALL iceberg; LOAD iceberg;\n"
            f"ATTACH '' AS tower (TYPE iceberg, ENDPOINT '{server.uri}', AUTHORIZATION_TYPE 'none');\n"
            "SELECT origin, count(*) FROM tower.nyc.flights GROUP BY origin;"
        ),
        "curl": f"curl {server.uri}/v1/namespaces/nyc/tables",
    }
    for client, snippet in snippets.items():
        console.print(f"\n[cyan]{client}[/]")
        console.print(snippet, soft_wrap=True, markup=False)


if __name__ == "__main__":
    sys.exit(main())
