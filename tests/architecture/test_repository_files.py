"""Every committed file: no path of one machine, no package registry's host, and scripts that can run."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from app.settings import Settings
from tests.architecture.source_files import ROOT, repository_files, shown

# Written apart, so that this file passes its own test.
REGISTRY_HOSTS = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("crates", "io"),
        ("proxy", "golang", "org"),
        ("registry", "npmjs", "org"),
        ("repo", "maven", "apache", "org"),
        ("repo1", "maven", "org"),
        ("deb", "debian", "org"),
    )
)
# Somebody's home, and the folder that this very checkout is in.
MACHINE_PATH = re.compile("|".join((r"/root/" + r"\.", r"/home/\w+/", r"/Users/\w+/", re.escape(f"{ROOT}/"))))


def texts() -> list[tuple[Path, str]]:
    found = []
    for path in repository_files():
        content = path.read_bytes()
        if b"\0" not in content:
            found.append((path, content.decode("utf-8")))
    return found


def test_no_file_names_a_package_registry() -> None:
    naming = [f"{shown(path)}: {host}" for path, text in texts() for host in REGISTRY_HOSTS if host in text]

    assert naming == []


def test_no_file_names_a_path_of_one_machine() -> None:
    naming = [f"{shown(path)}: {found[0]}" for path, text in texts() if (found := MACHINE_PATH.search(text))]

    assert naming == []


def test_no_file_has_the_marks_of_an_unfinished_merge() -> None:
    mark = re.compile(r"^(<{7}|>{7}) \S", re.MULTILINE)

    assert [shown(path) for path, text in texts() if mark.search(text)] == []


def test_scripts_are_executable_and_start_with_how_to_run_them() -> None:
    scripts = [path for path in repository_files() if path.parent in {ROOT / "scripts", ROOT / ".ci"}]

    unfit = [
        shown(path)
        for path in scripts
        if not os.access(path, os.X_OK) or not path.read_text(encoding="utf-8").startswith("#!/usr/bin/env ")
    ]

    assert scripts
    assert unfit == []


def test_shell_scripts_are_strict_and_parse() -> None:
    shell_scripts = [
        path
        for path in repository_files()
        if path.parent in {ROOT / "scripts", ROOT / ".ci"}
        if "bash" in path.read_text(encoding="utf-8").splitlines()[0]
    ]

    for path in shell_scripts:
        assert re.search(r"^set -(e?uo) pipefail$", path.read_text(encoding="utf-8"), re.MULTILINE), path
        subprocess.run(["bash", "-n", path], check=True)


def test_cleaning_up_leaves_the_tables_of_a_server_that_was_tried_out() -> None:
    shown = subprocess.run(
        ["make", "--dry-run", "clean"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout

    removed = shown.split()
    assert ".venv" in removed
    assert Path(Settings().default_warehouse_location).parent.name not in removed


def test_license_is_apache_2() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")

    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
