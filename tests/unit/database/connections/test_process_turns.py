import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from app.database.connections.process_turns import ProcessTurns

NAMES = {"1 db.t"}
OTHER_PROCESS = """
import sys
from app.database.connections.process_turns import ProcessTurns
turns = ProcessTurns(sys.argv[1])
turns.ask({"1 db.t"})
with turns.hold({"1 db.t"}):
    print("holds", flush=True)
    sys.stdin.readline()
    print("ends", file=open(sys.argv[2], "a"), flush=True)
sys.stdin.readline()
"""


@contextmanager
def other_process(path: Path, ended: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a process that asks for a turn and holds it until it reads a line."""
    command = [sys.executable, "-c", OTHER_PROCESS, str(path), str(ended)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holds\n"
        try:
            yield process
        finally:
            process.kill()


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_a_turn_waits_for_that_of_another_process(tmp_path: Path) -> None:
    turns, order = ProcessTurns(str(tmp_path / "turns"), longest_wait_s=30), tmp_path / "order"

    def take_turn() -> None:
        with turns.hold(NAMES), order.open("a") as file:
            print("after it", file=file)

    with other_process(tmp_path / "turns", order) as process:
        thread = Thread(target=take_turn)
        thread.start()
        thread.join(0.05)  # long enough to come first if it did not wait
        go_on(process)
        thread.join(30)
        assert order.read_text().splitlines() == ["ends", "after it"]


def test_a_turn_that_is_not_given_back_holds_nobody_up_for_ever(tmp_path: Path) -> None:
    turns = ProcessTurns(str(tmp_path / "turns"), longest_wait_s=0.01)
    with other_process(tmp_path / "turns", tmp_path / "order"), turns.hold(NAMES):
        pass
    assert not (tmp_path / "order").exists()


def test_a_killed_process_leaves_its_turn(tmp_path: Path) -> None:
    turns, taken = ProcessTurns(str(tmp_path / "turns"), longest_wait_s=30), list[bool]()
    with other_process(tmp_path / "turns", tmp_path / "order") as process:
        process.kill()
        process.wait()
        with turns.hold(NAMES):
            taken.append(True)
    assert taken == [True]


def test_other_names_do_not_wait(tmp_path: Path) -> None:
    turns = ProcessTurns(str(tmp_path / "turns"), longest_wait_s=3600)
    with other_process(tmp_path / "turns", tmp_path / "order"), turns.hold({"1 db.other"}):
        assert turns.is_asked(NAMES)
        assert not turns.is_asked({"1 db.other"})


def test_turns_are_taken_only_where_they_were_asked_for(tmp_path: Path) -> None:
    turns = ProcessTurns(str(tmp_path / "turns"))
    assert not turns.is_asked(NAMES)
    turns.ask(NAMES)
    assert turns.is_asked(NAMES)


def test_the_marks_of_a_machine_that_was_started_anew_mean_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = ProcessTurns(str(tmp_path / "turns"))
    monkeypatch.setattr("time.monotonic", lambda: 5000.0)
    turns.ask(NAMES)
    monkeypatch.setattr("time.monotonic", lambda: 1.0)
    assert not turns.is_asked(NAMES)
    monkeypatch.setattr("time.monotonic", lambda: 5003.0)
    assert not turns.is_asked(NAMES)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:"])
def test_databases_without_a_file_have_no_turns(url: str) -> None:
    turns = ProcessTurns.beside(url)
    turns.ask(NAMES)
    with turns.hold(NAMES):
        assert not turns.is_asked(NAMES)


@pytest.mark.parametrize(
    "url", ["postgresql://user:secret@host/name", "sqlite:///file:/secret/name?uri=true"]
)
def test_processes_on_one_database_elsewhere_share_turns(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    turns = ProcessTurns.beside(url)
    turns.ask(NAMES)
    assert ProcessTurns.beside(url).is_asked(NAMES)
    assert not ProcessTurns.beside(url.replace("name", "other")).is_asked(NAMES)
    assert not any("secret" in path.name for path in tmp_path.rglob("*"))


def test_a_temporary_folder_that_others_can_change_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path / f"icetower-turns-{os.geteuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    turns = ProcessTurns.beside("postgresql://user@host/name")
    turns.ask(NAMES)
    assert not turns.is_asked(NAMES)
    assert "others can change" in caplog.text
    assert list(folder.iterdir()) == []


def test_the_file_lies_beside_the_database(tmp_path: Path) -> None:
    ProcessTurns.beside(f"sqlite:///{tmp_path}/catalog.db").ask(NAMES)
    assert ProcessTurns(f"{tmp_path}/catalog.db-turns").is_asked(NAMES)


def test_without_a_place_on_the_disk_all_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("os.pwrite", lambda _descriptor, _content, _offset: 0)
    turns = ProcessTurns(str(tmp_path / "turns"))
    turns.ask(NAMES)
    with turns.hold(NAMES):
        assert not turns.is_asked(NAMES)
    assert "take no turns" in caplog.text


def test_without_the_file_all_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "turns").mkdir()
    turns = ProcessTurns(str(tmp_path / "turns"))
    turns.ask(NAMES)
    with turns.hold(NAMES):
        assert not turns.is_asked(NAMES)
    assert "take no turns" in caplog.text
