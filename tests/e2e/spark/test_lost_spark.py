"""F24: a Spark that has ended, as for want of memory, is started again for the next job."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.e2e.patience import wait_until
from tests.servers.spark import nightly

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ENDS = {
    "killed": """
for child in psutil.Process().children(recursive=True):
    child.kill()
    child.wait()
""",
    "stopped": "SparkContext._active_spark_context._jsc.stop()",
}
OPENS_TWICE = """
import psutil
from pyspark import SparkContext
from app.maintenance.spark.spark_sessions import SparkSessions

sessions = SparkSessions("local[1]", {"spark.driver.memory": "512m"})
print(sessions.open().sql("SELECT count(*) FROM range(3)").collect(), flush=True)
#ENDS
print(sessions.open().sql("SELECT count(*) FROM range(5)").collect(), flush=True)
sessions.close()
"""


@pytest.mark.parametrize("how", ["killed", nightly("stopped")])
def test_f24_spark_that_has_ended_is_started_again(tmp_path: Path, how: str) -> None:
    """In a process of its own: the Spark of the other tests goes on."""
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-c", OPENS_TWICE.replace("#ENDS", ENDS[how])],
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
        env=os.environ | {"PYTHONPATH": root, "TMPDIR": str(tmp_path)},
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[Row(count(1)=3)]", "[Row(count(1)=5)]"]


STARTS = """
from app.cli.terminal.signals import ended_as_by_ctrl_c
from app.maintenance.spark.spark_sessions import SparkSessions

with ended_as_by_ctrl_c():
    SparkSessions("local[1]", {"spark.driver.memory": "512m"}).open()
    input()
"""


def test_f24_spark_that_is_stopped_while_it_starts_leaves_nothing_behind(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[3])
    with subprocess.Popen(
        [sys.executable, "-c", STARTS],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=root,
        env=os.environ | {"PYTHONPATH": root, "TMPDIR": str(tmp_path)},
    ) as process:
        own = psutil.Process(process.pid)
        wait_until(lambda: any(_is_spark(child) for child in own.children()))
        started = own.children(recursive=True)
        process.send_signal(signal.SIGTERM)
        process.wait()

    try:
        wait_until(lambda: not any(_is_alive(child) for child in started))
    finally:
        for child in started:
            if _is_alive(child):
                child.kill()


def _is_spark(process: psutil.Process) -> bool:
    """Java is asked for its version before."""
    try:
        return "SparkSubmit" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
