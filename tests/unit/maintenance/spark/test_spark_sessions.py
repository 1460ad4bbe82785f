from __future__ import annotations

import socket
import sys

import pytest

from app.errors import InvalidSetting
from app.maintenance.spark.spark_runtime import ConnectUnreachable, PySparkMissing
from app.maintenance.spark.spark_sessions import SparkSessions, check_reachable


def test_without_pyspark_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)

    with pytest.raises(PySparkMissing, match=r"pip install 'icetower\[spark\]'"):
        SparkSessions("local[*]").open()


def test_connect_needs_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql.connect.session", None)

    with pytest.raises(PySparkMissing, match=r"pyspark\[connect\]"):
        SparkSessions("sc://127.0.0.1:1").open()


@pytest.mark.parametrize("master", ["", "localhost:7077", "spark:7077", "http://host:15002"])
def test_what_is_no_place_of_spark_is_refused_before_it_starts(master: str) -> None:
    with pytest.raises(
        InvalidSetting, match=r"Invalid address of Spark '.*': write local\[\*\], spark://… or sc://…"
    ):
        SparkSessions(master)


def test_closing_what_never_started_is_nothing() -> None:
    SparkSessions("local[*]").close()


def test_token_of_a_wrong_address_is_not_repeated() -> None:
    with pytest.raises(InvalidSetting) as refused:
        SparkSessions("host:15002/;token=hunter2")

    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "master", ["sc://127.0.0.1:1", "sc://127.0.0.1:1/;token=x", "sc://127.0.0.1:many", "sc://"]
)
def test_server_of_connect_that_is_not_there_is_said_at_once(master: str) -> None:
    """Its client tries for ten minutes."""
    with pytest.raises(ConnectUnreachable, match="No server of Spark Connect answers at sc://"):
        check_reachable(master)


def test_server_of_connect_that_listens_is_fine() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_reachable(f"sc://127.0.0.1:{server.getsockname()[1]}/;use_ssl=true")
