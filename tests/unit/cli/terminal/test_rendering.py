from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator

import pytest
from rich.text import Text

from app.cli.terminal.output import print_json_list
from app.cli.terminal.rendering import FITTED_ROWS, print_facts, print_table, shown_progress


def test_progress_that_is_stopped_says_how_far_it_came(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        with shown_progress(40) as progress:
            progress.advance(11)
            progress.advance()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()

    assert capsys.readouterr() == ("", "Stopped at 12 of 40. The same command goes on from there.\n")


def test_progress_that_comes_to_its_end_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress(1) as progress:
        progress.advance()

    assert capsys.readouterr() == ("", "")


def test_names_are_shown_as_they_are_while_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brackets are no markup there, and control characters do nothing to the terminal."""
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    with shown_progress(1) as progress:
        progress.say("sales.[/2025] \x1b[2J[bold]")

    assert "sales.[/2025] \\x1b[2J[bold]" in terminal.getvalue()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_names_of_facts_do_nothing_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_facts([("SQL (spark\x1b[31m)", "SELECT 1")])

    assert capsys.readouterr().out.startswith("SQL (spark\\x1b[31m)")


def test_styled_names_do_nothing_to_a_terminal_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """As branches, or what writers say that they have staged."""
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)

    print_table(["refs"], [[Text("audit\x1b]0;title", style="bold")]])

    assert "audit\\x1b]0;title" in terminal.getvalue()


@pytest.mark.parametrize(
    ("width", "heading", "left_out"),
    [
        (26, "id   name     file", ""),
        (25, "id   name", "Too narrow for: file. They are in --json.\n"),
        (3, "id", "Too narrow for: name, file. They are in --json.\n"),
    ],
)
def test_optional_columns_are_left_out_of_a_narrow_terminal(
    width: int,
    heading: str,
    left_out: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)

    print_table(["id", "name", "file"], [[1, "orders", "00001-a.json"], [2, "sales", None]], optional=2)

    assert Text.from_ansi(terminal.getvalue()).plain.splitlines()[0].rstrip() == heading
    assert capsys.readouterr().err == left_out


def test_nothing_is_folded_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 3000

    print_table(["name", "value"], [["a", long], ["two\nlines", "ü"]])
    print_facts([("SQL", [long, "two\nlines"]), ("none", [])])

    assert capsys.readouterr().out.splitlines() == [
        "name    value",
        "─" * 3008,
        f"a       {long}",
        "two     ü",
        "lines",
        f"SQL   {long}",
        "      two",
        "      lines",
        "none  –",
    ]


def test_many_rows_are_printed_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    shown = []

    def rows() -> Iterator[tuple[object, ...]]:
        for number in range(FITTED_ROWS + 3):
            shown.append(capsys.readouterr().out)
            yield number, f"ü{number}" if number else "two\nlines", None

    assert print_table(["id", "name", "x"], rows())

    lines = ("".join(shown) + capsys.readouterr().out).splitlines()
    assert lines[:4] == ["id    name         x", "─" * 20, "0     two\\nlines", "1     ü1"]
    assert lines[-1] == f"{FITTED_ROWS + 2}   ü{FITTED_ROWS + 2}"
    assert len(lines) == FITTED_ROWS + 5
    # The last but one was printed before the last one was asked for.
    assert f"ü{FITTED_ROWS + 1}\n" in shown[-1]


def test_no_rows_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert not print_table(["id"], [])

    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "items", [[], [["a", "ü\u2028"]], [{"a": {"b": [1]}}, {}, "two\nlines"]], ids=["none", "one", "three"]
)
def test_a_list_that_is_printed_as_it_comes_is_the_same_document(
    capsys: pytest.CaptureFixture[str], items: list[object]
) -> None:
    print_json_list(iter(items))

    assert capsys.readouterr().out == json.dumps(items, indent=2, ensure_ascii=False) + "\n"


def test_a_list_that_fails_before_its_end_stays_open_and_ends_its_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def half() -> Iterator[str]:
        yield "a"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        print_json_list(half())

    assert capsys.readouterr().out == '[\n  "a"\n'
