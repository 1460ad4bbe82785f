from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from app.catalog.context.catalog import Catalog
from app.database.backups import back_up
from app.database.connections.sqlite_files import prepare_file
from app.engine.change.updates import SetProperties
from app.engine.model.identifiers import TableIdentifier
from app.errors import DatabaseUnavailable, InvalidSetting
from tests.builders.catalogs import CALLER, catalog_on, server_on
from tests.builders.tables import FLIGHTS, commit_to, load_table, table_in

WRITERS = 4


def check_whole(path: Path) -> None:
    """Check that each pointer's newest event is where the pointer is, as one state has it."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        torn = connection.execute(
            "SELECT count(*) FROM pointers AS p WHERE metadata_location != (SELECT location FROM pointer_history AS h "
            "WHERE h.pointer_id = p.id ORDER BY sequence DESC LIMIT 1)"
        ).fetchone()
        assert torn == (0,)


def test_a_copy_made_while_writers_commit_is_one_state(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/icetower.db"
    catalog = catalog_on(url)
    names = [TableIdentifier(FLIGHTS, f"t{number}") for number in range(WRITERS)]
    for identifier in names:
        table_in(catalog, identifier)
    stop, landed = threading.Event(), [0] * WRITERS
    all_at_work = threading.Barrier(WRITERS + 1)

    def write(number: int) -> None:
        first = True
        while not stop.is_set():
            commit_to(catalog, SetProperties(updates={"n": str(landed[number])}), identifier=names[number])
            landed[number] += 1
            if first:
                all_at_work.wait()
                first = False

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    all_at_work.wait()
    copies, counts = [], []
    for number in range(5):
        before = list(landed)
        copies.append(tmp_path / f"copy-{number}.db")
        back_up(url, copies[-1])
        counts.append((before, list(landed)))
    stop.set()
    for thread in threads:
        thread.join()

    for copy, (before, after) in zip(copies, counts, strict=True):
        check_whole(copy)
        server = server_on(f"sqlite:///{copy}", catalog.files)
        warehouse = server.warehouses.find("wh")
        assert warehouse is not None
        copied = Catalog(server, warehouse, CALLER)
        for number, identifier in enumerate(names):
            found = int(load_table(copied, identifier).metadata.properties["n"])
            # What was acknowledged before it began is in it; what came after it ended is not.
            assert before[number] - 1 <= found <= after[number]


def test_a_copy_is_one_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    catalog_on(f"sqlite:///{tmp_path}/icetower.db")
    (tmp_path / "saved").mkdir()

    size = back_up(f"sqlite:///{tmp_path}/icetower.db", tmp_path / "saved" / "copy.db")

    assert [file.name for file in (tmp_path / "saved").iterdir()] == ["copy.db"]
    assert (tmp_path / "saved" / "copy.db").stat().st_size == size


def test_a_file_is_never_replaced(tmp_path: Path) -> None:
    catalog_on(f"sqlite:///{tmp_path}/icetower.db")
    there = tmp_path / "copy.db"
    there.write_text("mine")

    with pytest.raises(InvalidSetting, match="is there already"):
        back_up(f"sqlite:///{tmp_path}/icetower.db", there)
    assert there.read_text() == "mine"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://tower@db/tower", "pg_dump"),
        ("sqlite:///:memory:", "not a file"),
        ("sqlite://", "not a file"),
    ],
)
def test_what_is_no_file_is_refused(tmp_path: Path, url: str, said: str) -> None:
    with pytest.raises(InvalidSetting, match=said):
        back_up(url, tmp_path / "copy.db")


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailable, match="no database"):
        back_up(f"sqlite:///{tmp_path}/none.db", tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("has_commits", [False, True])
def test_a_database_beside_which_nothing_can_be_written_is_copied_unless_commits_would_be_left_out(
    tmp_path: Path, has_commits: bool
) -> None:
    source = tmp_path / "icetower.db"
    with closing(sqlite3.connect(source)) as writing:
        writing.execute("PRAGMA journal_mode = WAL")
        writing.execute("CREATE TABLE t (n INTEGER)")
        log = Path(f"{source}-wal").read_bytes()
    if has_commits:
        Path(f"{source}-wal").write_bytes(log)
    # Not even root can make this file.
    Path(f"{source}-shm").symlink_to(tmp_path / "nowhere" / "shm")

    if has_commits:
        with pytest.raises(DatabaseUnavailable, match="Copy both files to a folder that can be written to"):
            back_up(f"sqlite:///{source}", tmp_path / "copy.db")
        assert not (tmp_path / "copy.db").exists()
        return
    back_up(f"sqlite:///{source}", tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert copy.execute("SELECT name FROM sqlite_master").fetchall() == [("t",)]


def test_a_copy_is_not_mixed_with_the_log_of_the_database_that_it_replaces(tmp_path: Path) -> None:
    file = tmp_path / "icetower.db"
    url = f"sqlite:///{file}"
    catalog = catalog_on(url)
    table_in(catalog)
    back_up(url, tmp_path / "copy.db")
    table_in(catalog, TableIdentifier(FLIGHTS, "later"))
    # As after a kill: the log of all that was done since the last checkpoint is there.
    log = Path(f"{file}-wal").read_bytes()
    prepare_file(url)
    catalog.server.pointers._database.close()
    file.write_bytes((tmp_path / "copy.db").read_bytes())
    Path(f"{file}-wal").write_bytes(log)

    with pytest.raises(
        InvalidSetting, match="was put in the place of another one, whose log is still beside it"
    ):
        prepare_file(url)
    with pytest.raises(InvalidSetting, match="whose log is still beside it"):
        back_up(url, tmp_path / "second.db")
    assert not (tmp_path / "second.db").exists()

    Path(f"{file}-wal").unlink()
    prepare_file(url)
    check_whole(file)


def test_a_damaged_database_leaves_no_copy(tmp_path: Path) -> None:
    (tmp_path / "icetower.db").write_bytes(b"SQLite format 3\0" + b"x" * 5_000)

    with pytest.raises(DatabaseUnavailable):
        back_up(f"sqlite:///{tmp_path}/icetower.db", tmp_path / "copy.db")
    assert [file.name for file in tmp_path.iterdir()] == ["icetower.db"]


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    catalog_on(f"sqlite:///{tmp_path}/icetower.db")

    with pytest.raises(DatabaseUnavailable, match=r"to .*/nowhere/copy.db: there is no folder .*/nowhere$"):
        back_up(f"sqlite:///{tmp_path}/icetower.db", tmp_path / "nowhere" / "copy.db")


@pytest.mark.parametrize("name", ["wal", "journal", "shm", "turns"])
def test_a_name_that_sqlite_keeps_for_itself_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """With a copy as its journal a database takes no connections any more."""
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("icetower.db")) as database:
        database.execute("CREATE TABLE t (x)")

    with pytest.raises(InvalidSetting, match="Give it another one"):
        back_up("sqlite:///icetower.db", tmp_path / f"icetower.db-{name}")

    assert [file.name for file in tmp_path.iterdir()] == ["icetower.db"]


def test_a_name_that_no_file_can_have_is_said(tmp_path: Path) -> None:
    catalog_on(f"sqlite:///{tmp_path}/icetower.db")

    with pytest.raises(InvalidSetting, match="cannot be a file: File name too long"):
        back_up(f"sqlite:///{tmp_path}/icetower.db", tmp_path / ("a" * 5_000))
