"""A local Spark session that knows one catalog: Icetower."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from app.maintenance.spark.spark_runtime import (
    ICEBERG_EXTENSIONS,
    check_java,
    iceberg_runtime_jar,
    write_quiet_logging,
)

CATALOG = "tower"


def rest_catalog(uri: str, name: str = CATALOG) -> dict[str, str]:
    """Say to Spark where the catalog is: these three lines are all that a Spark session needs of Icetower."""
    return {
        f"spark.sql.catalog.{name}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{name}.type": "rest",
        f"spark.sql.catalog.{name}.uri": uri,
    }


def open_session(
    catalogs: Mapping[str, str], folder: Path, *, default_catalog: str = CATALOG
) -> SparkSession:
    """Start Spark in this machine's memory, on two cores, with its scratch files in a folder of ours.

    Raises:
        JavaMissing: there is no Java to start.
        IcebergRuntimeMissing: Iceberg's jar for Spark is not installed.
    """
    check_java()
    folder.mkdir(parents=True, exist_ok=True)
    # A short run is mostly start-up: the first-tier compiler and the serial collector save a third of it.
    java_options = (
        f"{write_quiet_logging(folder)} {shlex.quote(f'-Dderby.system.home={folder}')}"
        " -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
    )
    settings = {
        "spark.jars": str(iceberg_runtime_jar()),
        "spark.sql.extensions": ICEBERG_EXTENSIONS,
        "spark.sql.defaultCatalog": default_catalog,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.sql.warehouse.dir": (folder / "unused").as_uri(),
        "spark.local.dir": str(folder / "shuffle"),
        "spark.driver.extraJavaOptions": java_options,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **catalogs,
    }
    builder = SparkSession.builder.master("local[2]").appName("icetower")
    for key, text in settings.items():
        builder = builder.config(key, text)
    return builder.getOrCreate()
