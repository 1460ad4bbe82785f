"""`icetower migrate`."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Icetower


def tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_a_database_is_migrated_up_and_down(bare: Icetower, folder: Path) -> None:
    database = folder / ".icetower" / "icetower.db"

    up = bare("migrate", "--json").json
    assert up["before"] is None
    assert up["database"] == f"sqlite:///{database}"
    assert "pointers" in tables(database)

    again = bare("migrate")
    assert again.out == f"sqlite:///{database} is at revision {up['after']} already; nothing to do.\n"

    down = bare("migrate", "--down", "--to", "base")
    assert down.out == f"sqlite:///{database} went from revision {up['after']} to none.\n"
    assert "pointers" not in tables(database)


def test_a_revision_that_there_is_not_is_told_in_one_line(bare: Icetower) -> None:
    failed = bare("migrate", "--to", "nonsense")

    assert (failed.status, failed.out) == (1, "")
    assert failed.err.startswith("Error: ")
    assert "nonsense" in failed.err
    assert failed.err.count("\n") == 1


def test_a_revision_in_the_other_direction_is_refused_with_what_to_type(bare: Icetower) -> None:
    newest = bare("migrate", "--json").json["after"]

    back = bare("migrate", "--to", "0005")
    assert (back.status, back.out) == (2, "")
    assert back.err == f"Error: The database is at revision {newest}; to go back to 0005, add --down\n"

    assert bare("migrate", "--down", "--to", "0005").status == 0
    up = bare("migrate", "--down", "--to", newest)
    assert (up.status, up.out) == (2, "")
    assert up.err == f"Error: The database is at revision 0005; to go up to {newest}, leave out --down\n"


@pytest.fixture
def logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers = handlers
    root.setLevel(level)


@pytest.mark.usefixtures("logging_as_it_was")
def test_a_database_of_a_newer_build_is_told_in_one_line(bare: Icetower, folder: Path) -> None:
    assert bare("migrate").status == 0
    with closing(sqlite3.connect(folder / ".icetower" / "icetower.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")

    for command in (["migrate"], ["migrate", "--down", "--to", "base"], ["serve", "--port", "0"]):
        failed = bare(*command)

        assert (failed.status, failed.out) == (1, "")
        assert failed.err.startswith(
            "Error: The database is at revision 9999, which this build does not know;"
        )
        assert failed.err.endswith("Run a newer build of Icetower\n")
        assert failed.err.count("\n") == 1


def test_down_wants_a_revision(bare: Icetower) -> None:
    refused = bare("migrate", "--down")

    assert (refused.status, refused.out) == (2, "")
    assert refused.err == "Error: --down needs --to: a revision, such as 0001, or base\n"


def test_another_database_may_be_named(bare: Icetower, folder: Path) -> None:
    assert bare("migrate", "--database-url", "sqlite:///deep/in/here.db").status == 0

    assert "pointers" in tables(folder / "deep" / "in" / "here.db")


def test_a_database_that_does_not_answer_is_told_in_one_line(bare: Icetower) -> None:
    failed = bare("migrate", "--database-url", "postgresql://u:hunter2@127.0.0.1:1/d")

    assert (failed.status, failed.out) == (1, "")
    assert failed.err.startswith("Error: ")
    assert failed.err.count("\n") == 1
    assert "hunter2" not in failed.err


def test_a_folder_that_cannot_be_made_is_told_in_one_line(bare: Icetower, folder: Path) -> None:
    (folder / "file").write_text("")

    failed = bare("migrate", "--database-url", f"sqlite:///{folder}/file/x.db")

    assert failed.status == 2
    assert failed.err.startswith(f"Error: Cannot make the folder {folder}/file for the database: ")


def test_a_database_that_is_none_of_ours_is_wrong_usage(bare: Icetower) -> None:
    assert bare("migrate", "--database-url", "mysql://h/d").status == 2
