"""Help, version, which server is called, and how every foreseeable failure ends."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from app.cli.main import command_line
from tests.unit.cli.conftest import Icetower
from tests.unit.cli.fixed_answers import fixed_answers

COMMAND_LINE_PAGE = Path(__file__).parents[3] / "docs" / "cli.md"


def all_commands() -> dict[tuple[str, ...], Any]:
    found: dict[tuple[str, ...], Any] = {}

    def collect(command: Any, path: tuple[str, ...]) -> None:
        if not hasattr(command, "commands"):
            found[path] = command
            return
        for name, inner in command.commands.items():
            collect(inner, (*path, name))

    collect(typer.main.get_command(command_line()), ())
    return found


def test_windows_is_refused_with_the_way_out() -> None:
    on_windows = "import sys; sys.platform = 'win32'; from app.cli.start import run; run()"
    ended = subprocess.run([sys.executable, "-c", on_windows], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "run it inside WSL" in ended.stderr
    assert "Traceback" not in ended.stderr


# The demo's help is the demo's own.
@pytest.mark.parametrize("command", [found for found in all_commands() if found != ("demo",)], ids=" ".join)
def test_every_command_explains_itself(bare: Icetower, command: tuple[str, ...]) -> None:
    explained = bare(*command, "--help")

    assert explained.status == 0
    assert f"icetower {' '.join(command)}" in explained.out
    assert "For example:" in explained.out


def test_every_option_and_argument_is_explained() -> None:
    for path, command in all_commands().items():
        for parameter in command.params:
            assert parameter.help, (path, parameter.name)
            # As those of all others: a name in capitals; the library adds brackets and dots itself.
            named = parameter.metavar or ""
            assert parameter.param_type_name == "option" or re.fullmatch(r"[A-Z=]+", named), path


def test_help_shows_what_stands_in_angle_brackets(bare: Icetower) -> None:
    assert "sqlite:///<path>" in bare("serve", "--help").out


def test_the_page_about_the_command_line_names_every_command() -> None:
    page = COMMAND_LINE_PAGE.read_text(encoding="utf-8")
    rows = [
        re.findall(r"`([a-z -]+)`", line.partition("|")[2].partition("|")[0]) for line in page.splitlines()
    ]

    named = {
        (*first.split()[1:-1], last)
        for first, *more in filter(None, rows)
        for last in (first.split()[-1], *more)
    }

    assert named == set(all_commands())


def test_commands_start_without_the_libraries_of_the_server() -> None:
    loaded = (
        "import app.cli.main, sys; print({'alembic', 'fastapi', 'sqlalchemy', 'uvicorn'} & set(sys.modules))"
    )

    assert subprocess.check_output([sys.executable, "-c", loaded], text=True) == "set()\n"


def test_without_arguments_the_help_is_shown_as_wrong_usage(bare: Icetower) -> None:
    shown = bare()

    assert shown.status == 2
    assert "icetower serve" in shown.out + shown.err


def test_the_version(bare: Icetower) -> None:
    assert bare("--version").out.startswith("icetower")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_command_runs_with_its_standard_streams_closed(folder: Path, closed: str) -> None:
    """Some schedulers close them; the database, opened next, must not get the number of one of them."""
    command = f"{sys.executable} -m app.cli migrate {closed}"

    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert (folder / ".icetower" / "icetower.db").exists()
    assert "Nothing was prepared" not in done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", ["migrate", "config show", "config show --json"])
def test_an_answer_that_finds_no_room_is_not_taken_for_work_that_was_not_done(
    folder: Path, arguments: str, unbuffered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    command = f"{sys.executable} -m app.cli {arguments} >/dev/full"

    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert (
        "Standard output cannot be written: No space left on device. What the command had done"
        in " ".join(done.stderr.split())
    )
    assert (folder / ".icetower" / "icetower.db").exists() is (arguments == "migrate")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.usefixtures("folder")
def test_an_answer_that_has_lost_its_reader_ends_without_a_word(
    unbuffered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    read, write = os.pipe()
    os.close(read)

    done = subprocess.run(
        [sys.executable, "-m", "app.cli", "config", "show"],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)

    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.usefixtures("folder")
def test_characters_that_a_terminal_lacks_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    monkeypatch.setenv("ICETOWER_DEFAULT_WAREHOUSE", "東")

    def shown(*options: str) -> str:
        command = [sys.executable, "-m", "app.cli", "config", "show", *options]
        return subprocess.check_output(command, text=True)

    assert "\\u6771" in shown()
    assert json.loads(shown("--json"))["default_warehouse"]["value"] == "東"


FAILING = """
from app.cli import main
from app.errors import InvalidSetting

def command(**_):
    print("begun")
    raise {failure}

main.command_line = lambda _: command
main.run()
"""
"""A command that prints something and fails."""


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_refusal_is_said_though_standard_output_has_no_room(
    unbuffered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    program = FAILING.format(failure="InvalidSetting('there is no such colour')")

    done = subprocess.run(
        ["sh", "-c", '"$0" -c "$1" >/dev/full', sys.executable, program],
        capture_output=True,
        text=True,
        check=False,
    )

    lost, refused = "Standard output cannot be written", "there is no such colour"
    assert (lost in done.stderr, refused in done.stderr) == ((True, False) if unbuffered else (False, True))
    assert done.returncode == (1 if unbuffered else 2)


def test_a_full_disk_under_another_file_is_not_taken_for_standard_output() -> None:
    program = FAILING.format(failure="OSError(28, 'No space left on device')")

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (1, "begun\n")
    assert done.stderr == "Error: [Errno 28] No space left on device\n"


@pytest.mark.parametrize(
    "arguments", [["tabel"], ["table", "lst"], ["table", "list", "--colour"], ["table", "list"]]
)
def test_a_command_or_option_that_there_is_not_is_wrong_usage(bare: Icetower, arguments: list[str]) -> None:
    refused = bare(*arguments)

    assert refused.status == 2
    assert "--help" in refused.err


@pytest.mark.parametrize("option", ["--uri", "--warehouse"])
def test_an_option_of_commands_that_stands_before_them_is_told_its_place(bare: Icetower, option: str) -> None:
    result = bare(option, "x", "table", "list", "sales")

    assert result.status == 2
    assert "it goes after the command" in result.err


def test_a_server_that_does_not_run_is_told_in_one_line(bare: Icetower) -> None:
    with socket.socket() as bound_but_deaf:
        bound_but_deaf.bind(("127.0.0.1", 0))
        uri = f"http://127.0.0.1:{bound_but_deaf.getsockname()[1]}"
        failed = bare("namespace", "list", "--uri", uri)

    assert (failed.status, failed.out) == (1, "")
    assert failed.err.startswith(f"Error: Cannot reach a catalog at {uri}: ")
    assert "icetower serve" in failed.err
    assert failed.err.count("\n") == 1


def test_an_address_that_is_none_is_told_in_one_line(bare: Icetower) -> None:
    failed = bare("warehouse", "list", "--uri", "localhost:8181")

    assert failed.status == 1
    assert "starts with http:// or https://" in failed.err


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"[]", b"{}", b'{"defaults": 1, "overrides": {}}'])
def test_a_server_that_is_no_catalog_is_told_in_one_line(bare: Icetower, body: bytes) -> None:
    with fixed_answers(200, body) as uri:
        failed = bare("namespace", "list", "--uri", uri)

    assert (failed.status, failed.out) == (1, "")
    assert "is not one of an Iceberg REST catalog" in failed.err
    assert failed.err.count("\n") == 1


def test_a_servers_failure_is_told_with_its_message(bare: Icetower) -> None:
    body = (
        b'{"error": {"message": "Something broke, request 17", "type": "InternalServerError", "code": 500}}'
    )
    with fixed_answers(500, body) as uri:
        failed = bare("namespace", "list", "--uri", uri)

    assert (failed.status, failed.err) == (1, "Error: Something broke, request 17\n")


def test_a_dotenv_that_is_not_text_is_wrong_usage(bare: Icetower, folder: Path) -> None:
    (folder / ".env").write_bytes(b"ICETOWER_URI=\xff\n")

    refused = bare("namespace", "list")

    assert refused.status == 2
    assert refused.err.startswith("Error: Cannot read .env: ")


def test_the_server_may_be_named_in_dotenv(bare: Icetower, folder: Path, server_url: str) -> None:
    (folder / ".env").write_text(f"ICETOWER_URI={server_url}\nICETOWER_WAREHOUSE=nowhere\n")

    assert bare("warehouse", "list").status == 0
    assert bare("namespace", "list").err == "Error: Warehouse does not exist: nowhere\n"
    assert bare("namespace", "list", "--warehouse", "default").status == 0


@pytest.mark.parametrize("arguments", [["zzz", "\udcff"], ["table", "show", "\udcff"], ["undrop", "\udcff"]])
def test_an_argument_that_is_not_utf_8_is_wrong_usage(bare: Icetower, arguments: list[str]) -> None:
    refused = bare(*arguments)

    assert (refused.status, refused.out) == (2, "")
    assert refused.err == "Error: Invalid argument '\\udcff': it is not valid UTF-8\n"


def test_a_migration_to_no_revision_is_wrong_usage(bare: Icetower) -> None:
    refused = bare("migrate", "--to", "")

    assert refused.status == 2
    assert refused.err.startswith("Error: Invalid --to: it is empty")


@pytest.mark.parametrize(
    "arguments",
    [
        ["table", "drop", "a.t", "--purge", "--yes", "--warehouse", ""],
        ["namespace", "list", "--uri", ""],
        ["namespace", "list", ""],
        ["warehouse", "health", ""],
        ["diff", "@1d", ""],
        ["import", "folder", ".", "--namespace", ""],
        ["rebuild", "--warehouse", "", "--dry-run"],
    ],
    ids=" ".join,
)
def test_an_empty_name_is_not_taken_for_the_usual_one(bare: Icetower, arguments: list[str]) -> None:
    """It is mostly that of a variable which is not set."""
    refused = bare(*arguments)

    assert (refused.status, refused.out) == (2, "")
    assert "empty" in refused.err


def test_an_empty_variable_counts_as_not_given(icetower: Icetower, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICETOWER_WAREHOUSE", "")

    assert icetower("namespace", "list").status == 0
    assert icetower("warehouse", "health").status == 0


_STRANGE = {
    "metadata": {"schemas": 5, "refs": [1], "snapshots": {"a": 1}, "properties": [1]},
    "metadata-location": "x",
    "tables": [{}],
    "dropped": [{}],
    "plan": [{}],
    "snapshots": [{}],
}
_READING = [
    ("tower",),
    ("maintain", "a.t", "--dry-run"),
    ("dropped", "list"),
    ("undrop", "a.t"),
    ("view", "show", "a.v"),
    ("table", "show", "a.t"),
    ("table", "health", "a.t"),
    ("table", "snapshots", "a.t"),
    ("commit", "show", "x"),
]


@pytest.mark.parametrize("body", [{}, _STRANGE])
@pytest.mark.parametrize("command", _READING, ids=" ".join)
def test_answers_of_another_form_end_in_one_line(
    bare: Icetower, command: tuple[str, ...], body: dict[str, object]
) -> None:
    answer = json.dumps({"defaults": {}, "overrides": {}, **body}).encode()
    with fixed_answers(200, answer) as uri:
        ended = bare(*command, "--uri", uri)

    assert ended.status in {0, 1}
    assert ended.err.count("\n") <= 1
    assert ended.err.startswith("Error: ") == (ended.status == 1)


def test_message_of_a_server_does_nothing_to_the_terminal(bare: Icetower) -> None:
    message = "\x1b[31mred\x1b]0;title\x07\u202eevil" + "x" * 1_000_000
    body = json.dumps({"error": {"message": message, "type": "X", "code": 400}}).encode()
    with fixed_answers(400, body) as uri:
        failed = bare("namespace", "list", "--uri", uri)

    assert failed.status == 1
    assert failed.err.startswith(r"Error: \x1b[31mred\x1b]0;title\x07\u202eevilxx")
    assert len(failed.err) < 110_000
    assert failed.err.endswith("more characters\n")


def test_ctrl_c_while_the_command_line_is_built_ends_without_a_word(
    bare: Icetower, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("app.cli.main.command_line", stopped)

    ended = bare("tower")

    assert (ended.status, ended.out, ended.err) == (130, "", "")


def test_a_start_of_the_server_imports_no_library_for_terminals() -> None:
    script = "import app.cli.main, app.cli.server.serving, app.cli.server.processes, sys; print('rich' in sys.modules)"

    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert found.stdout == "False\n"
