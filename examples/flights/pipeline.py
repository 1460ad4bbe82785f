"""What every step of the pipeline is given: Spark, the narrator, the raw files and where the catalog is."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Row, SparkSession

from examples.flights.narration import Narrator, Unexpected
from examples.flights.server import environment


@dataclass(frozen=True)
class Pipeline:
    """The hands of the demo."""

    spark: SparkSession
    narrator: Narrator
    raw_files: Path
    uri: str
    """Where the catalog is."""

    def sql(self, statement: str) -> list[Row]:
        """Show a statement, run it, return its rows."""
        self.narrator.show(statement)
        return self.spark.sql(statement).collect()

    def icetower(self, *arguments: str) -> None:
        """Show a command of Icetower's, run it, and show what it reports.

        Raises:
            Unexpected: it failed.
        """
        self.narrator.command(f"icetower {' '.join(arguments)}")
        done = subprocess.run(
            [sys.executable, "-m", "app.cli", *arguments, "--uri", self.uri],
            # Where no `.env` names another warehouse.
            cwd=self.raw_files,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        for line in [*done.stderr.splitlines(), *done.stdout.splitlines()]:
            self.narrator.say(line)
        if done.returncode != 0:
            raise Unexpected(f"icetower {' '.join(arguments)} ended with status {done.returncode}")

    def number(self, query: str) -> int:
        """Run a query that answers one number."""
        return int(self.spark.sql(query).first()[0])  # type: ignore[index]  # an aggregate always has one row

    def rows(self, table: str) -> int:
        """Count the rows of a table, branch, tag or snapshot."""
        return self.number(f"SELECT count(*) FROM {table}")

    def files(self, table: str, content: str = "data_files") -> int:
        """Count the files that a table's current snapshot consists of."""
        return self.number(f"SELECT count(*) FROM {table}.{content}")

    def current_snapshot(self, table: str) -> int:
        """Return the id of the snapshot that readers of the table get."""
        return self.number(f"SELECT snapshot_id FROM {table}.refs WHERE name = 'main'")
