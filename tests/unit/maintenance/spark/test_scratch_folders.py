from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from app.maintenance.spark.scratch_folders import new_scratch_folder

MADE_BY = """
import sys
from app.maintenance.spark.scratch_folders import new_scratch_folder
folder = new_scratch_folder()
(folder / "shuffle").mkdir()
(folder / "shuffle" / "block").write_bytes(b"rows")
print(folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def started() -> tuple[subprocess.Popen[str], Path]:
    """Return a process and its folder, which is made to look an hour old."""
    process = subprocess.Popen(
        [sys.executable, "-c", MADE_BY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    os.utime(folder, (folder.stat().st_atime, folder.stat().st_mtime - 3600))
    return process, folder


def test_what_a_killed_process_left_is_deleted_by_the_next_one() -> None:
    process, folder = started()
    new_scratch_folder()
    assert (folder / "shuffle" / "block").exists(), "it was at work"

    process.kill()
    process.communicate()
    assert folder.exists()

    mine = new_scratch_folder()
    assert not folder.exists()
    assert mine.exists()


def test_a_process_that_ends_takes_its_folder_along() -> None:
    process, folder = started()

    process.communicate("")

    assert process.returncode == 0
    assert not folder.exists()


def test_what_is_new_or_another_program_s_is_left(temporary: Path) -> None:
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "rows").touch()
    (temporary / "icetower-spark-link").symlink_to(elsewhere)
    (temporary / "icetower-spark-file").touch()
    for old in temporary.iterdir():
        os.utime(old, (0, 0), follow_symlinks=False)
    new = temporary / "icetower-spark-new"
    new.mkdir()

    new_scratch_folder()

    assert new.exists()
    assert (elsewhere / "rows").exists()
    assert (temporary / "icetower-spark-file").exists()
