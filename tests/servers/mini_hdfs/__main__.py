"""Starts a real HDFS and runs the contract suites against it; see `scripts/hdfs`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.webhdfs import FOLDER, REAL

HERE = Path(__file__).parent
SUITES = [
    "tests/contract/test_file_io.py",
    "tests/contract/test_file_trees.py",
    "tests/contract/test_pointer_stores.py",
    "tests/concurrency/test_file_system_tables.py",
    "tests/crash/test_hdfs_restarts.py",
]
SPARK = "tests/e2e/spark/test_f3_on_hdfs.py"
_START_SECONDS = 120


@contextmanager
def mini_hdfs(folder: Path) -> Iterator[str]:
    """Run one name node and one data node in a folder; hand out the value of `ICETOWER_TEST_HDFS`."""
    classes = folder / "classpath"
    maven = ["mvn", "--batch-mode", "--quiet", "-f", str(HERE / "pom.xml"), "dependency:build-classpath"]
    subprocess.run([*maven, f"-Dmdep.outputFile={classes}"], check=True)
    # Hadoop reaches into the JDK's own packages.
    java = ["java", "-Xmx512m", "--add-opens=java.base/java.lang=ALL-UNNAMED", "-cp", classes.read_text()]
    command = [*java, str(HERE / "MiniHdfs.java"), str(folder)]
    os.mkfifo(folder / "commands")
    with (folder / "log").open("wb") as log, (folder / "commands").open("r+b", buffering=0) as commands:
        process = subprocess.Popen(command, stdin=commands, stdout=log, stderr=subprocess.STDOUT)
    try:
        ports, deadline, pause = folder / "ports", time.monotonic() + _START_SECONDS, threading.Event()
        while not ports.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"HDFS did not start:\n{(folder / 'log').read_text()[-5000:]}")
            pause.wait(0.1)
        rpc, http = ports.read_text().split()
        yield f"http://127.0.0.1:{http} 127.0.0.1:{rpc}"
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    """Run the suites, with Spark if that is asked for."""
    arguments = [text for text in sys.argv[1:] if text != "--spark"]
    wanted = [*SUITES, *([SPARK] if "--spark" in sys.argv else [])]
    with tempfile.TemporaryDirectory(prefix="icetower-hdfs-") as name, mini_hdfs(Path(name)) as hdfs:
        tests = [sys.executable, "-m", "pytest", *wanted, "-m", "", "-n0", "-k", "hdfs", *arguments]
        done = subprocess.run(tests, env=os.environ | {REAL: hdfs, FOLDER: name}, check=False)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
