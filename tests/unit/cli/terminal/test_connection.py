"""Which server a command calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cli.terminal.connection import chosen_uri, chosen_warehouse
from app.errors import InvalidSetting


def test_a_line_of_dotenv_that_cannot_be_read_does_not_lead_to_the_usual_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("ICETOWER_URI='https://catalog.example\n")

    with pytest.raises(InvalidSetting, match=r"^Cannot read line 1 of \.env"):
        chosen_uri(None)

    (tmp_path / ".env").write_text("ICETOWER_URI='https://catalog.example'\n")
    assert chosen_uri(None) == "https://catalog.example"


def test_an_empty_line_of_dotenv_counts_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("ICETOWER_WAREHOUSE=\nICETOWER_URI=\n")

    assert (chosen_warehouse(None), chosen_uri(None)) == (None, "http://127.0.0.1:8181")
