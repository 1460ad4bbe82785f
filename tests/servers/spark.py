"""A Spark session for tests: two cores, Iceberg, and any number of Icetower catalogs by name."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from examples.flights.spark_session import open_session, rest_catalog


def start_spark(folder: Path, name: str, uri: str) -> SparkSession:
    """Start the one Spark of this process, with one catalog; its scratch files go to the folder."""
    return open_session(rest_catalog(uri, name), folder, default_catalog=name)


def nightly(*values: Any) -> Any:
    """Return a parameter that is tried in the nightly profile only: each of Spark's takes seconds."""
    return pytest.param(*values, marks=pytest.mark.nightly)


def add_catalog(spark: SparkSession, name: str, uri: str, **properties: str) -> None:
    """Let a session see one more catalog: Spark opens it when its name is first used."""
    for key, text in rest_catalog(uri, name).items():
        spark.conf.set(key, text)
    for key, text in properties.items():
        spark.conf.set(f"spark.sql.catalog.{name}.{key.replace('_', '-')}", text)


@dataclass(frozen=True)
class Sql:
    """Spark SQL whose current catalog and namespace are the test's own.

    A name of several parts starts at the catalog, so `our.` in a statement stands for the test's namespace:
    `SELECT * FROM sales` but `SELECT * FROM our.sales.snapshots`.
    """

    spark: SparkSession
    catalog: str
    namespace: str

    def __call__(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement; answer its rows as tuples."""
        ours = re.sub(r"\bour\.", f"{self.catalog}.{self.namespace}.", statement)
        return [tuple(row) for row in self.spark.sql(ours).collect()]

    def one(self, query: str) -> Any:
        """Answer the only value of the only row."""
        ((value,),) = self(query)
        return value

    def column(self, query: str) -> list[Any]:
        """Answer the only column."""
        return [value for (value,) in self(query)]

    def metadata(self, table: str) -> dict[str, Any]:
        """Read a table's newest metadata file."""
        newest = self.column(f"SELECT file FROM our.{table}.metadata_log_entries ORDER BY timestamp, file")[
            -1
        ]
        document: dict[str, Any] = json.loads(path_of(newest).read_bytes())
        return document

    def fails(self, statement: str) -> str:
        """Run a statement that must fail; answer what Spark says."""
        with pytest.raises(Exception) as caught:  # noqa: PT011 - py4j's and Spark's errors share no parent
            self(statement)
        return str(caught.value)


def path_of(location: str) -> Path:
    """Answer the path of a local file's location, which Spark writes as `file:/x` or `file:///x`."""
    return Path("/" + location.removeprefix("file:").lstrip("/"))
