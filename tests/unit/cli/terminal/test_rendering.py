from __future__ import annotations

import pytest

from app.cli.terminal.rendering import print_facts, shown_progress


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


def test_names_of_facts_do_nothing_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_facts([("SQL (spark\x1b[31m)", "SELECT 1")])

    assert capsys.readouterr().out.startswith("SQL (spark\\x1b[31m)")
