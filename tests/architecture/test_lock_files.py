"""Lock files: they alone decide what is installed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["Dockerfile", "scripts/environment"])
def test_nothing_is_looked_for_beside_a_lock_file(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()

    installs = [line for line in lines if "--require-hashes" in line]

    # pip 23 looks for dependencies with extras beside the lock file, and stops when it finds a newer release.
    assert installs
    assert [line for line in installs if "--no-deps" not in line] == []


def test_lock_file_of_this_environment_lacks_nothing() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "pip", "check"], capture_output=True, text=True, timeout=120, check=False
    )

    assert (found.returncode, re.findall(r".*requires.*", found.stdout)) == (0, []), (
        found.stdout + found.stderr
    )
