"""A bare JVM with Iceberg's own classes in it: without Spark it is up in a fraction of a second."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from pyspark.errors.exceptions import captured

from app.maintenance.spark.spark_runtime import check_java, iceberg_runtime_jar

_JAVA_OPTIONS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-Duser.timezone=UTC"]
"""A test makes many small calls: compiling them twice or collecting in parallel only costs start-up."""


@contextmanager
def iceberg_jvm() -> Iterator[Any]:
    """Start a JVM, yield its `org.apache.iceberg` package, and end it.

    It ends with this process too, whatever happens to it: the gateway watches its standard input.
    """
    check_java()
    spark_jars = _spark_jars()
    class_path = [
        iceberg_runtime_jar(),
        *spark_jars.glob("slf4j-api-*.jar"),
        *spark_jars.glob("hadoop-client-api-*.jar"),  # its classes stand in signatures of Iceberg's builders
    ]
    (py4j_jar,) = spark_jars.glob("py4j-*.jar")
    home = os.environ.get("JAVA_HOME")
    port, token, process = launch_gateway(
        jarpath=str(py4j_jar),
        classpath=os.pathsep.join(str(jar) for jar in class_path),
        javaopts=_JAVA_OPTIONS,
        java_path=str(Path(home, "bin", "java")) if home else "java",
        die_on_exit=True,
        enable_auth=True,
        return_proc=True,
    )
    gateway = JavaGateway(
        gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True)
    )
    try:
        with pytest.MonkeyPatch.context() as patch:
            _keep_errors_from_spark(gateway, patch)
            yield gateway.jvm.org.apache.iceberg
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait(timeout=30)


def _keep_errors_from_spark(gateway: JavaGateway, patch: pytest.MonkeyPatch) -> None:
    """Leave this JVM's errors as they are: once a process has Spark, PySpark looks all errors up in Spark's JVM."""
    convert = captured.convert_exception

    def convert_those_of_spark(error: Any) -> captured.CapturedException:
        if error._gateway_client is gateway._gateway_client:
            return captured.UnknownException("", "")  # which raises the one that was found
        return convert(error)

    patch.setattr(captured, "convert_exception", convert_those_of_spark)


def _spark_jars() -> Path:
    """Find the folder of jars that PySpark brings along."""
    package = find_spec("pyspark")
    assert package is not None
    assert package.submodule_search_locations
    return Path(package.submodule_search_locations[0], "jars")
