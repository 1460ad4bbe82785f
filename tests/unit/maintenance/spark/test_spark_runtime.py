from __future__ import annotations

from pathlib import Path

import pytest

from app.maintenance.spark import spark_runtime
from app.maintenance.spark.spark_runtime import (
    IcebergRuntimeMissing,
    JavaMissing,
    check_java,
    iceberg_runtime_jar,
)


def test_java_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(JavaMissing, match=r"JAVA_HOME=.* has none\. Install Java 17"):
        check_java()


@pytest.mark.parametrize("version", ["1.8.0_292", "25.0.1"])
def test_java_that_spark_does_not_run_on_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(JavaMissing, match="does not run on the Java at"):
        check_java()


def test_missing_iceberg_is_said_how_to_get(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_runtime, "find_spec", lambda _name: None)

    with pytest.raises(IcebergRuntimeMissing, match=r"icetower\[spark\]"):
        iceberg_runtime_jar()
