"""`icetower tower` against a real server."""

from __future__ import annotations

import io
import sys

import pytest

from app.client.http.failures import CatalogUnreachable
from app.client.request_parts import JsonObject
from app.client.tower import TowerCalls
from tests.unit.cli.conftest import Icetower


class Terminal(io.StringIO):
    """A terminal at which somebody presses Ctrl+C after three rounds."""

    rounds = 0

    def isatty(self) -> bool:
        return True

    def pause(self, _seconds: float) -> None:
        self.rounds += 1
        if self.rounds == 3:
            raise KeyboardInterrupt


def test_without_a_terminal_it_is_shown_once(icetower: Icetower, table: str) -> None:
    shown = icetower("tower", "--tables", "200")
    as_json = icetower("tower", "--tables", "200", "--json")

    assert shown.status == 0
    assert shown.out.splitlines()[0].split("  ")[0] == "table"
    assert "slots used" in shown.out
    (line,) = [line for line in shown.out.splitlines() if line.startswith(table)]
    assert line.split()[1:] == ["2", "0", "0", "0", "0.0s", "0/0", "1", "0"]
    assert table.split(".") in [[*found["namespace"], found["table"]] for found in as_json.json["tables"]]


def test_names_are_written_with_the_separator(icetower: Icetower, table: str) -> None:
    shown = icetower("tower", "--tables", "200", "--separator", "/")

    assert table.replace(".", "/") in shown.out
    assert table not in shown.out


def test_at_a_terminal_it_goes_on_until_it_is_stopped(
    icetower: Icetower, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr("app.cli.terminal.rendering.sleep", terminal.pause)

    left = icetower("tower", "--tables", "200")

    assert (left.status, terminal.rounds) == (0, 3)
    # The first picture is drawn again at the end.
    assert terminal.getvalue().count("rebased") >= 3
    assert table in terminal.getvalue()


@pytest.mark.parametrize(
    ("width", "last", "missing"), [(40, "queue", "held"), (80, "rebased", ""), (12, "table", "landed")]
)
def test_a_narrow_terminal_shows_fewer_columns_with_whole_words(
    icetower: Icetower, table: str, width: int, last: str, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr("app.cli.terminal.rendering.sleep", terminal.pause)

    icetower("tower")

    assert last in terminal.getvalue()
    assert not missing or missing not in terminal.getvalue()


def test_a_server_that_goes_away_may_come_back(
    icetower: Icetower, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("LINES", "1000")
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr("app.cli.terminal.rendering.sleep", terminal.pause)
    asked, looks = TowerCalls.busiest, iter(range(9))

    def busiest(self: TowerCalls, most: int) -> JsonObject:
        if next(looks) == 1:
            raise CatalogUnreachable("http://127.0.0.1:8181", "Connection refused")
        return asked(self, most)

    monkeypatch.setattr(TowerCalls, "busiest", busiest)

    left = icetower("tower", "--tables", "200")

    assert (left.status, terminal.rounds) == (0, 3)
    before, after = terminal.getvalue().split("no answer")
    assert table in before
    assert table in after


def test_numbers_that_make_no_sense_are_wrong_usage(icetower: Icetower) -> None:
    assert icetower("tower", "--tables", "0").status == 2
    assert icetower("tower", "--every", "0").status == 2


def test_one_table_is_shown_with_all_its_numbers(icetower: Icetower, table: str) -> None:
    shown = icetower("tower", table)
    as_json = icetower("tower", table.replace(".", "/"), "--separator", "/", "--json")

    assert shown.status == 0
    numbers = {line.split()[0]: line.split()[1] for line in shown.out.splitlines()}
    assert (numbers["landed"], numbers["slots-given"], numbers["queue-length"]) == ("2", "0", "0")
    assert numbers["since"].startswith("20")
    assert as_json.json["table"] == table.rpartition(".")[2]
    assert icetower("tower", "no.such").status == 1
