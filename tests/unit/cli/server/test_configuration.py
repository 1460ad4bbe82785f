"""`icetower config show`."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.settings import Settings
from tests.unit.cli.conftest import Icetower


def test_every_setting_is_shown_with_its_source(bare: Icetower, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICETOWER_PORT", "9")
    monkeypatch.setenv("ICETOWER_ALLOWED_LOCATIONS", "s3://a,s3://b")

    as_json = bare("config", "show", "--json").json
    for_people = bare("config", "show").out

    assert list(as_json) == list(Settings.model_fields)
    assert as_json["port"] == {"value": 9, "source": "ICETOWER_PORT"}
    assert as_json["host"] == {"value": "127.0.0.1", "source": "default"}
    assert as_json["allowed_locations"]["value"] == ["s3://a", "s3://b"]
    assert all(name in for_people for name in Settings.model_fields)
    assert "None" not in for_people


def test_secrets_are_masked(bare: Icetower, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICETOWER_DATABASE_URL", "postgresql://u:hunter2@h/d")
    (folder / "icetower.toml").write_text(
        '[default_warehouse_storage]\ns3.secret-access-key = "hunter2"\ns3.region = "eu"\n'
    )

    as_json = bare("config", "show", "--json")
    for_people = bare("config", "show")

    assert "hunter2" not in as_json.out + for_people.out
    assert as_json.json["default_warehouse_storage"] == {
        "value": {"s3.secret-access-key": "********", "s3.region": "eu"},
        "source": "icetower.toml",
    }
    assert "s3.secret-access-key = ********" in for_people.out


def test_another_file_may_be_named(bare: Icetower, folder: Path) -> None:
    (folder / "other.toml").write_text("port = 7\n")

    assert bare("config", "show", "--json", "--config", "other.toml").json["port"]["source"] == "other.toml"


def test_wrong_settings_are_wrong_usage(bare: Icetower, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICETOWER_PROT", "9")

    refused = bare("config", "show")

    assert (refused.status, refused.out) == (2, "")
    assert (
        refused.err
        == "Error: Unknown variable ICETOWER_PROT in the environment: did you mean ICETOWER_PORT?\n"
    )
