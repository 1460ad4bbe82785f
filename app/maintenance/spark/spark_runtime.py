"""What Spark needs on this machine: a Java that it runs on, and Iceberg's runtime."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Final

OLDEST_JAVA: Final = 11
NEWEST_JAVA: Final = 21
ICEBERG_EXTENSIONS: Final = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_QUIET_LOGS: Final = """
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


class SparkMissing(Exception):
    """Parent of what keeps Spark from starting here; the message says how to get it."""


class PySparkMissing(SparkMissing):
    """PySpark, or a library that it needs, is not installed."""


class JavaMissing(SparkMissing):
    """Spark has no Java to run on."""


class IcebergRuntimeMissing(SparkMissing):
    """Iceberg's jar for Spark is not installed."""


class ConnectUnreachable(SparkMissing):
    """Nothing listens at the address of a server of Spark Connect."""


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
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603 - found above
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if version is None or not OLDEST_JAVA <= int(version.group(1)) <= NEWEST_JAVA:
        found = version.group(1) if version else (answer.stderr or answer.stdout).strip() or "no answer"
        raise JavaMissing(f"Spark 3.5 does not run on the Java at {java} ({found}). {how_to_get_it}")


def iceberg_runtime_jar() -> Path:
    """Find Iceberg's runtime for Spark 3.5 in the Python package that carries it.

    Elsewhere, `--packages org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.2` does the same.

    Raises:
        IcebergRuntimeMissing: the package is not installed.
    """
    package = find_spec("snowpark_connect_deps_iceberg")
    for place in (package.submodule_search_locations or []) if package else []:
        for jar in Path(place, "jars").glob("iceberg-spark-runtime-3.5_2.12-*.jar"):
            return jar
    raise IcebergRuntimeMissing("Iceberg's runtime for Spark is missing: pip install 'icetower[spark]'")


def write_quiet_logging(folder: Path) -> str:
    """Write a configuration of logs that shows errors only, and return the JVM's option for it."""
    file = folder / "log4j2.properties"
    file.write_text(_QUIET_LOGS)
    return f"-Dlog4j2.configurationFile={file.as_uri()}"
