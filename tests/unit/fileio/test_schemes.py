"""Which store a location goes to, and what settings are refused."""

from __future__ import annotations

import pytest

from app.engine.model.ids import Location
from app.errors import FileMissing, InvalidLocation, InvalidSetting
from app.fileio.memory import SHARED
from app.fileio.schemes import files_for


def test_the_same_settings_give_the_same_files() -> None:
    first = files_for({"s3.region": "here", "s3.endpoint": "http://x"})

    assert files_for({"s3.endpoint": "http://x", "s3.region": "here"}) is first
    assert files_for({"s3.endpoint": "http://y", "s3.region": "here"}) is not first


def test_a_changed_environment_variable_gives_other_files(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = {"s3.access-key-id": "k", "s3.secret-access-key": "env:WAREHOUSE_SECRET"}
    monkeypatch.setenv("WAREHOUSE_SECRET", "one")
    first = files_for(storage)
    monkeypatch.setenv("WAREHOUSE_SECRET", "two")

    assert files_for(storage) is not first


def test_memory_locations_share_one_store_per_process() -> None:
    location = Location("memory://test-schemes/x")
    files_for({}).write_new(location, b"x")

    assert files_for({"s3.region": "elsewhere"}).read(location) == b"x"
    assert SHARED.read(location) == b"x"

    SHARED.delete(location)


def test_an_unknown_scheme_is_named_with_the_known_ones() -> None:
    with pytest.raises(
        InvalidLocation, match=r"'oss': oss://b/k; known are file, memory, s3, s3a, s3n, gs, .*hdfs"
    ):
        files_for({}).read(Location("oss://b/k"))


def test_a_scheme_in_capitals_is_the_same_scheme() -> None:
    with pytest.raises(FileMissing):
        files_for({}).read(Location("FILE:/no/such/file"))


def test_a_missing_environment_variable_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WAREHOUSE_SECRET", raising=False)

    with pytest.raises(InvalidSetting, match="WAREHOUSE_SECRET"):
        files_for({"s3.secret-access-key": "env:WAREHOUSE_SECRET"})


@pytest.mark.parametrize(
    ("storage", "location", "reason"),
    [
        ({"s3.access-key-id": "a"}, "s3://bucket/k", "go together"),
        ({"s3.secret-access-key": "a"}, "s3://bucket/k", "go together"),
        ({"s3.endpoint": "ftp://x"}, "s3://bucket/k", r"like https://host:port, not 'ftp://x'"),
        ({"s3.endpoint": "http://h/path"}, "s3://bucket/k", "like https://host:port"),
        ({"s3.path-style-access": "maybe"}, "s3://bucket/k", "must be true or false"),
        ({"s3.connect-timeout": "soon"}, "s3://bucket/k", "must be a number"),
        ({"gcs.oauth2.token": "t"}, "gs://bucket/k", "token-expires-at"),
        (
            {"gcs.oauth2.token": "t", "gcs.oauth2.token-expires-at": "1e20"},
            "gs://bucket/k",
            "Cannot open the store of gs",
        ),
        (
            {"gcs.oauth2.token": "t", "gcs.oauth2.token-expires-at": "1e300"},
            "gs://bucket/k",
            "Cannot open the store of gs",
        ),
        ({"adls.account-key": "!!"}, "abfss://c@a.dfs.core.windows.net/k", "not Base64"),
        (
            {"adls.account-key": "a2V5", "adls.sas-token": "t"},
            "abfss://c@a.dfs.core.windows.net/k",
            "Cannot open",
        ),
        ({"hdfs.port": "x"}, "hdfs:///k", "Cannot open"),
    ],
)
def test_settings_that_make_no_sense_are_refused(storage: dict[str, str], location: str, reason: str) -> None:
    with pytest.raises(InvalidSetting, match=reason):
        files_for(storage).read(Location(location))


def test_a_setting_of_one_store_does_not_disturb_another() -> None:
    with pytest.raises(FileMissing):
        files_for({"s3.endpoint": "ftp://x"}).read(Location("/no/such/file"))


def test_a_password_in_an_endpoint_is_refused_and_not_repeated() -> None:
    with pytest.raises(InvalidSetting) as raised:
        files_for({"s3.endpoint": "http://user:hunter2@h"}).read(Location("s3://bucket/k"))

    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "location",
    [
        "s3://b@evil/k",
        "s3://evil#/k",
        "s3://evil?x/k",
        "s3:///k",
        "s3://bucket/../k",
        "s3://bucket/a/./k",
        "s3://bucket/a\x00b",
        "s3://bucket/\ud800",
        "s3://bucket/a//b",
        "s3://bucket/a/",
        "s3://bucket",
        "gs:///k",
        "gs://bucket/../k",
        "abfss://container/k",
        "abfss://c@a.dfs.core.windows.net/../k",
        "file://host/k",
        "file:k",
        "/a\x00b",
        "/\ud800",
        "k",
    ],
)
def test_what_a_store_cannot_name_is_refused_before_it_is_asked(location: str) -> None:
    files = files_for(
        {"s3.endpoint": "http://127.0.0.1:1", "s3.access-key-id": "a", "s3.secret-access-key": "b"}
    )

    for call in (files.read, files.delete, files.exists):
        with pytest.raises(InvalidLocation):
            call(Location(location))
    with pytest.raises(InvalidLocation):
        files.write_new(Location(location), b"")
