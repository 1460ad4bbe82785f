"""Storage settings: names, environment variables and types."""

from __future__ import annotations

import pytest

from app.errors import InvalidSetting
from app.fileio.storage_settings import StorageSettings, check_names, read_environment

_KNOWN = frozenset({"s3.endpoint", "s3.region", "gcs.project-id"})


def test_a_value_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAREHOUSE_SECRET", "hunter2")

    settings = read_environment({"s3.secret-access-key": "env:WAREHOUSE_SECRET", "s3.region": "here"})

    assert settings == {"s3.secret-access-key": "hunter2", "s3.region": "here"}


@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_variable_is_named(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    if value is None:
        monkeypatch.delenv("WAREHOUSE_SECRET", raising=False)
    else:
        monkeypatch.setenv("WAREHOUSE_SECRET", value)

    with pytest.raises(InvalidSetting, match=r"WAREHOUSE_SECRET.*s3\.secret-access-key"):
        read_environment({"s3.secret-access-key": "env:WAREHOUSE_SECRET"})


def test_a_misspelt_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidSetting, match=r"s3\.endpont; known are s3\.endpoint, s3\.region$"):
        check_names({"s3.endpont": "http://x"}, _KNOWN)


def test_names_of_other_rooms_pass() -> None:
    check_names({"s3.endpoint": "http://x", "vending": "true", "other.thing": "1"}, _KNOWN)


def test_the_first_name_that_is_set_counts() -> None:
    settings = StorageSettings({"a": "", "b": "2", "c": "3"})

    assert settings.find("a", "b", "c") == "2"
    assert settings.find("z") is None


@pytest.mark.parametrize(("value", "flag"), [("true", True), ("TRUE", True), ("false", False), ("", None)])
def test_flags(value: str, flag: bool | None) -> None:
    assert StorageSettings({"f": value}).find_flag("f") is flag


def test_a_flag_that_is_neither_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="f must be true or false, not 'yes'"):
        StorageSettings({"f": "yes"}).find_flag("f")


@pytest.mark.parametrize(("value", "number"), [("2", 2), ("0.5", 0.5), ("0", 0), ("", 7)])
def test_numbers(value: str, number: float) -> None:
    assert StorageSettings({"n": value}).read_number("n", 7) == number


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "soon"])
def test_what_is_no_number_is_refused(value: str) -> None:
    with pytest.raises(InvalidSetting, match="n must be a number"):
        StorageSettings({"n": value}).read_number("n", 7)
