"""`icetower backup`."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Icetower


def test_a_database_is_found_whatever_its_folder_is_called(
    bare: Icetower, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "50%20?").mkdir()
    monkeypatch.chdir(folder / "50%20?")
    assert bare("migrate").status == 0

    assert bare("backup", "copy.db").status == 0
    assert (folder / "50%20?" / "copy.db").is_file()


def test_a_database_is_copied_once(bare: Icetower, folder: Path) -> None:
    assert bare("migrate").status == 0

    copied = bare("backup", "saved.db", "--json").json
    again = bare("backup", "saved.db")

    assert copied["file"] == "saved.db"
    assert copied["bytes"] == (folder / "saved.db").stat().st_size
    assert (again.status, again.out) == (2, "")
    assert "saved.db is there already" in again.err


def test_a_postgres_database_is_left_to_pg_dump(bare: Icetower) -> None:
    refused = bare("backup", "x.db", "--database-url", "postgresql://u:hunter2@h/d")

    assert refused.status == 2
    assert "pg_dump" in refused.err
    assert "hunter2" not in refused.err


def test_a_copy_is_a_database_to_work_with(bare: Icetower, folder: Path) -> None:
    assert bare("migrate").status == 0
    assert bare("backup", "saved.db").out.startswith(
        f"Copied sqlite:///{folder}/.icetower/icetower.db to saved.db: "
    )

    assert "nothing to do" in bare("migrate", "--database-url", f"sqlite:///{folder}/saved.db").out


def test_what_a_killed_backup_left_goes_with_the_next_one(bare: Icetower, folder: Path) -> None:
    assert bare("migrate").status == 0
    old, young = folder / ".monday.db.1f.icetower-part", folder / ".tuesday.db.2f.icetower-part"
    for left in (old, young, folder / ".monday.db.1f.icetower-part-journal", folder / ".other.part"):
        left.write_bytes(b"half a database")
        if left != young:
            os.utime(left, (time.time() - 4_000,) * 2)

    assert bare("backup", "saved.db").status == 0

    assert {entry.name for entry in folder.iterdir()} == {".icetower", "saved.db", young.name, ".other.part"}
