"""Storage settings: names, environment variables and types."""

from __future__ import annotations

import pytest

from app.errors import InvalidSetting
from app.fileio.storage_settings import StorageEnvironment, StorageSettings, check_names

_KNOWN = frozenset({"s3.endpoint", "s3.region", "gcs.project-id"})


ALLOWED = StorageEnvironment(("ONE_SECRET", "LAKE_*"))


@pytest.mark.parametrize("variable", ["ONE_SECRET", "LAKE_", "LAKE_KEY"])
def test_a_value_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "hunter2")

    settings = ALLOWED.read({"s3.secret-access-key": f"env:{variable}", "s3.region": "here"})

    assert settings.values == {"s3.secret-access-key": "hunter2", "s3.region": "here"}
    assert settings.secrets == ("hunter2",)


@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_variable_is_named(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    if value is None:
        monkeypatch.delenv("ONE_SECRET", raising=False)
    else:
        monkeypatch.setenv("ONE_SECRET", value)

    with pytest.raises(InvalidSetting, match=r"ONE_SECRET of the server is not set.*s3\.secret-access-key"):
        ALLOWED.read({"s3.secret-access-key": "env:ONE_SECRET"})


@pytest.mark.parametrize(
    "variable", ["ONE_SECRET2", "one_secret", "LAKE", "HOME", "PATH", "", "*", "LAKE_*X", " HOME"]
)
@pytest.mark.parametrize("is_set", [True, False])
def test_no_other_variable_is_read(monkeypatch: pytest.MonkeyPatch, variable: str, *, is_set: bool) -> None:
    if is_set and variable:
        monkeypatch.setenv(variable, "hunter2")
    elif variable:
        monkeypatch.delenv(variable, raising=False)
    environment = ALLOWED if variable != "LAKE_*X" else StorageEnvironment(("ONE_SECRET",))

    with pytest.raises(InvalidSetting, match="may not read environment variable") as refused:
        environment.read({"s3.region": f"env:{variable}"})

    assert "hunter2" not in str(refused.value)


def test_the_operators_own_settings_may_name_any_variable_as_long_as_they_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANY_SECRET", "hunter2")
    own = {"s3.endpoint": "http://store", "s3.access-key-id": "k", "s3.secret-access-key": "env:ANY_SECRET"}
    environment = StorageEnvironment((), own)

    assert environment.read(dict(own)).values["s3.secret-access-key"] == "hunter2"
    for changed in (
        {**own, "s3.endpoint": "http://evil"},
        {**own, "s3.access-key-id": "env:ANY_SECRET"},
        {"s3.secret-access-key": "env:ANY_SECRET"},
    ):
        with pytest.raises(InvalidSetting, match=r"ANY_SECRET.*allows none"):
            environment.read(changed)


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
    with pytest.raises(InvalidSetting, match=r"f must be true or false$"):
        StorageSettings({"f": "yes"}).find_flag("f")


@pytest.mark.parametrize(("value", "number"), [("2", 2), ("0.5", 0.5), ("0", 0), ("", 7)])
def test_numbers(value: str, number: float) -> None:
    assert StorageSettings({"n": value}).read_number("n", 7) == number


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "soon"])
def test_what_is_no_number_is_refused(value: str) -> None:
    with pytest.raises(InvalidSetting, match=r"n must be a number of at least 0$"):
        StorageSettings({"n": value}).read_number("n", 7)
