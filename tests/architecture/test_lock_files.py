"""Lock files: they hold what pyproject.toml asks for, with hashes, agree, and alone decide what is installed."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.architecture.source_files import ROOT

PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT: dict[str, Any] = PYPROJECT["project"]
BUILD: list[str] = PYPROJECT["build-system"]["requires"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]


def text_of(name: str) -> str:
    return (ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8")


def locked(name: str) -> dict[str, set[str]]:
    """Return the locked versions of every package; a package may have one for each platform."""
    versions: dict[str, set[str]] = {}
    for package, version in PINNED.findall(text_of(name)):
        versions.setdefault(canonicalize_name(package), set()).add(version)
    return versions


@pytest.mark.parametrize(
    ("name", "requirements"),
    [
        ("server", PROJECT["dependencies"]),
        ("build", BUILD),
        ("dev", [*BUILD, *PROJECT["dependencies"], *(line for lines in EXTRAS.values() for line in lines)]),
    ],
)
def test_lock_file_holds_what_the_project_asks_for(name: str, requirements: list[str]) -> None:
    versions = locked(name)
    wanted = [Requirement(line) for line in requirements if not line.startswith("icetower")]

    unmet = [
        str(requirement)
        for requirement in wanted
        if not (found := versions.get(canonicalize_name(requirement.name)))
        or not all(requirement.specifier.contains(Version(version)) for version in found)
    ]

    assert unmet == [], "run make lock"


@pytest.mark.parametrize("name", ["server", "build"])
def test_lock_file_is_part_of_the_larger_one(name: str) -> None:
    everything = locked("dev")

    differing = {
        package: (versions, everything.get(package))
        for package, versions in locked(name).items()
        if versions != everything.get(package)
    }

    assert differing == {}


@pytest.mark.parametrize("name", ["server", "build", "dev"])
def test_every_locked_package_has_a_hash(name: str) -> None:
    entries = re.split(r"^(?=[A-Za-z0-9])", text_of(name), flags=re.MULTILINE)[1:]

    without = [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry]

    assert entries
    assert without == []


def test_server_lock_file_leaves_out_what_only_tests_and_demo_need() -> None:
    assert not set(locked("server")) & {"pyspark", "pytest", "duckdb", "pyiceberg", "ruff"}


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
