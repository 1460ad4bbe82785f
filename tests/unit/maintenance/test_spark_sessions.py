from __future__ import annotations

import sys

import pytest

from app.maintenance.spark_runtime import PySparkMissing
from app.maintenance.spark_sessions import SparkSessions


def test_without_pyspark_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)

    with pytest.raises(PySparkMissing, match=r"pip install 'icetower\[spark\]'"):
        SparkSessions("local[*]").open()


def test_connect_needs_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql.connect.session", None)

    with pytest.raises(PySparkMissing, match=r"pyspark\[connect\]"):
        SparkSessions("sc://127.0.0.1:1").open()


def test_closing_what_never_started_is_nothing() -> None:
    SparkSessions("local[*]").close()
