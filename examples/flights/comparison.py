"""The last step: the same tables read by Spark, PyIceberg and DuckDB must give the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pyarrow.compute as pc
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession
from rich.padding import Padding
from rich.table import Table

from examples.flights.narration import Narrator

# What is counted and summed: tables, and integer columns of theirs, so that sums are exact in any order.
MEASURES = {
    "flights": ("distance", "arr_delay"),
    "weather": ("wind_dir", "hour"),
    "planes": ("seats", "engines"),
    "airports": ("alt", "tz"),
    "airlines": (),
}

Reader = Callable[[str, tuple[str, ...]], list[int]]


def compare(spark: SparkSession, uri: str, folder: Path, narrator: Narrator) -> None:
    """Read every table with each engine, print the numbers, and check that they are equal."""
    readers: dict[str, Reader] = {
        "Spark": spark_reader(spark),
        "PyIceberg": pyiceberg_reader(uri),
        "DuckDB": duckdb_reader(uri, folder),
    }
    seen = {
        engine: {
            f"{table} {measure}": number
            for table, columns in MEASURES.items()
            for measure, number in zip(
                ("rows", *(f"sum of {column}" for column in columns)), read(table, columns), strict=True
            )
        }
        for engine, read in readers.items()
    }
    shown = Table("", *readers, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for measure in seen["Spark"]:
        shown.add_row(measure, *(f"{seen[engine][measure]:,}" for engine in readers))
    narrator.console.print(Padding(shown, (0, 0, 0, 7)))
    for engine in ("PyIceberg", "DuckDB"):
        different = {key: number for key, number in seen[engine].items() if number != seen["Spark"][key]}
        narrator.check(f"numbers on which {engine} and Spark differ", len(different), 0)


def spark_reader(spark: SparkSession) -> Reader:
    """Read through Spark SQL."""

    def read(table: str, columns: tuple[str, ...]) -> list[int]:
        answer = spark.sql(f"SELECT {_aggregates(columns)} FROM nyc.{table}").collect()[0]
        return [int(number) for number in answer]

    return read


def pyiceberg_reader(uri: str) -> Reader:
    """Read into Arrow with PyIceberg: no Java."""
    catalog = load_catalog("tower", type="rest", uri=uri)

    def read(table: str, columns: tuple[str, ...]) -> list[int]:
        fields = columns or ("*",)
        rows = catalog.load_table(("nyc", table)).scan(selected_fields=fields).to_arrow()
        return [rows.num_rows, *(int(pc.sum(rows[column]).as_py()) for column in columns)]

    return read


def duckdb_reader(uri: str, folder: Path) -> Reader:
    """Read with DuckDB and its Iceberg extension; no Java, either."""
    connection = duckdb_with_iceberg(folder)
    connection.execute(f"ATTACH '' AS tower (TYPE iceberg, ENDPOINT '{uri}', AUTHORIZATION_TYPE 'none')")

    def read(table: str, columns: tuple[str, ...]) -> list[int]:
        answer = connection.execute(f"SELECT {_aggregates(columns)} FROM tower.nyc.{table}").fetchall()[0]
        return [int(number) for number in answer]

    return read


def duckdb_with_iceberg(folder: Path) -> duckdb.DuckDBPyConnection:
    """Open DuckDB with its Iceberg extension out of the Python packages that carry it, without a download.

    Outside this example, `INSTALL iceberg; LOAD iceberg` does the same.
    """
    connection = duckdb.connect(config={"extension_directory": str(folder)})
    for extension in ("avro", "httpfs", "iceberg"):
        connection.execute(f"INSTALL '{_extension_file(extension)}'")
        connection.execute(f"LOAD {extension}")
    return connection


def _aggregates(columns: tuple[str, ...]) -> str:
    return ", ".join(("count(*)", *(f"sum({column})" for column in columns)))


def _extension_file(extension: str) -> Path:
    package = find_spec(f"duckdb_extension_{extension}")
    for place in (package.submodule_search_locations or []) if package else []:
        for file in Path(place).rglob("*.duckdb_extension"):
            return file
    raise ModuleNotFoundError(f"duckdb-extension-{extension} is not installed; `make demo` installs it")
