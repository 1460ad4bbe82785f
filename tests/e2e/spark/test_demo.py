"""`make demo`: the whole example runs, its numbers agree, and it says what is missing when something is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

# A minute where nothing else runs, four on a busy machine.
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(960)]


def run_demo(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "examples.flights", "--folder", folder],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def test_the_demo_empties_its_folder_and_runs_to_its_end(tmp_path: Path) -> None:
    folder = tmp_path / "Zoë's demo"
    leftover = folder / "leftover"
    folder.mkdir()
    of_a_demo = {
        "port": 1,
        "database_url": f"sqlite:///{folder}/icetower.db",
        "default_warehouse_location": f"{folder}/warehouse",
    }
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in of_a_demo.items()]
    (folder / "icetower.toml").write_text("".join(lines))
    leftover.touch()

    done = run_demo(folder)

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "✓ rows in nyc.flights: 336,776" in done.stdout
    assert "✓ rows deleted since the tag, by its files: 8,255" in done.stdout
    assert "✓ an overwrite made on the tag would conflict: yes" in done.stdout
    assert "✓ flights to Chicago in March, planned by the server, read by PyIceberg: 1,295" in done.stdout
    assert "Brought back table nyc.airports." in done.stdout
    assert "✓ planes in the catalog as it was: 3,322" in done.stdout
    assert "✓ planes after the restoration: 3,322" in done.stdout
    assert "icetower maintain nyc.flights --spark local[2]" in done.stdout
    assert "✓ delete files that are left: 0" in done.stdout
    assert "✓ numbers on which PyIceberg and Spark differ: 0" in done.stdout
    assert "✓ numbers on which DuckDB and Spark differ: 0" in done.stdout
    assert "All numbers agree." in done.stdout
    assert "WARN" not in done.stdout + done.stderr
    assert not leftover.exists()


def test_without_java_the_demo_says_how_to_get_it(tmp_path: Path) -> None:
    done = run_demo(tmp_path / "demo", JAVA_HOME=str(tmp_path / "nothing"))

    assert done.returncode == 1
    assert "Install Java 17" in " ".join(done.stdout.split())
    assert "Traceback" not in done.stdout + done.stderr
    assert not (tmp_path / "demo").exists()


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    precious = tmp_path / "precious.txt"
    precious.write_text("mine")

    done = run_demo(tmp_path)

    assert done.returncode == 1
    assert "is not a demo's folder" in " ".join(done.stdout.split())
    assert precious.read_text() == "mine"
