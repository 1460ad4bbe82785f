"""One Spark session for all tests in this folder, and a fresh namespace for each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.servers.spark import Sql, start_spark

CATALOG = "tower"
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, sqlite_server: str) -> Iterator[SparkSession]:
    session = start_spark(tmp_path_factory.mktemp("spark"), CATALOG, sqlite_server)
    yield session
    session.stop()


@pytest.fixture
def sql(spark: SparkSession) -> Sql:
    namespace = f"test_{next(_numbers)}"
    spark.sql(f"CREATE NAMESPACE {CATALOG}.{namespace}")
    spark.sql(f"USE {CATALOG}.{namespace}")
    return Sql(spark, CATALOG, namespace)
