"""A local Spark session that knows one catalog: Icetower."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import SparkSession

CATALOG = "tower"
OLDEST_JAVA, NEWEST_JAVA = 11, 21

QUIET_LOGS = """
status = error
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
logger.python.name = org.apache.spark.api.python.PythonGatewayServer
logger.python.level = error
"""


class JavaMissing(Exception):
    """Spark has no Java to run on; the message says how to get one."""


class IcebergRuntimeMissing(Exception):
    """Iceberg's jar for Spark is not installed; the message says how to get it."""


def check_java() -> None:
    """Make sure that Spark finds a Java that it runs on.

    Raises:
        JavaMissing: there is none, or one that Spark 3.5 does not run on.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    how_to_get_it = (
        "Install Java 17, then try again:\n"
        "  Debian, Ubuntu   sudo apt-get install openjdk-17-jre-headless\n"
        "  Fedora           sudo dnf install java-17-openjdk-headless\n"
        "  macOS            brew install openjdk@17\n"
        "  any other        https://adoptium.net/temurin/releases/?version=17\n"
        "If it is installed already, set JAVA_HOME to its folder."
    )
    if java is None or not Path(java).exists():
        place = f"JAVA_HOME={home}" if home else "the PATH"
        raise JavaMissing(f"Spark runs on Java, and {place} has none. {how_to_get_it}")
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if version is None or not OLDEST_JAVA <= int(version.group(1)) <= NEWEST_JAVA:
        found = version.group(1) if version else (answer.stderr or answer.stdout).strip() or "no answer"
        raise JavaMissing(f"Spark 3.5 does not run on the Java at {java} ({found}). {how_to_get_it}")


def iceberg_runtime_jar() -> Path:
    """Find Iceberg's runtime for Spark 3.5 in the Python package that carries it.

    Outside this example, `--packages org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.2` does the same.

    Raises:
        IcebergRuntimeMissing: the package is not installed.
    """
    package = find_spec("snowpark_connect_deps_iceberg")
    for place in (package.submodule_search_locations or []) if package else []:
        for jar in Path(place, "jars").glob("iceberg-spark-runtime-3.5_2.12-*.jar"):
            return jar
    raise IcebergRuntimeMissing("Iceberg's runtime for Spark is missing: pip install 'icetower[spark]'")


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
    logging = folder / "log4j2.properties"
    logging.write_text(QUIET_LOGS)
    # A short run is mostly start-up: the first-tier compiler and the serial collector save a third of it.
    java_options = (
        f"-Dlog4j2.configurationFile={logging.as_uri()} -Dderby.system.home={folder}"
        " -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
    )
    settings = {
        "spark.jars": str(iceberg_runtime_jar()),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
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
