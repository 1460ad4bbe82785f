"""Which store a location goes to, and what settings are refused."""

from __future__ import annotations

import traceback

import pytest

from app.engine.model.ids import Location
from app.errors import FileMissing, FilesUnavailable, IcetowerError, InvalidLocation, InvalidSetting
from app.fileio.memory import SHARED
from app.fileio.schemes import check_storage, files_for
from app.fileio.storage_settings import StorageEnvironment

SECRETS = StorageEnvironment(("ICETOWER_SECRET_*",))


def test_the_same_settings_give_the_same_files() -> None:
    first = files_for({"s3.region": "here", "s3.endpoint": "http://x"})

    assert files_for({"s3.endpoint": "http://x", "s3.region": "here"}) is first
    assert files_for({"s3.endpoint": "http://y", "s3.region": "here"}) is not first


def test_a_changed_environment_variable_gives_other_files(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = {"s3.access-key-id": "k", "s3.secret-access-key": "env:ICETOWER_SECRET_W"}
    monkeypatch.setenv("ICETOWER_SECRET_W", "one")
    first = files_for(storage, SECRETS)
    monkeypatch.setenv("ICETOWER_SECRET_W", "two")

    assert files_for(storage, SECRETS) is not first


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
    monkeypatch.delenv("ICETOWER_SECRET_W", raising=False)

    with pytest.raises(InvalidSetting, match="ICETOWER_SECRET_W"):
        files_for({"s3.secret-access-key": "env:ICETOWER_SECRET_W"}, SECRETS)


@pytest.mark.parametrize(
    ("storage", "location", "reason"),
    [
        ({"s3.access-key-id": "a"}, "s3://bucket/k", "go together"),
        ({"s3.secret-access-key": "a"}, "s3://bucket/k", "go together"),
        ({"s3.endpoint": "ftp://x"}, "s3://bucket/k", "like https://host:port"),
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
        ({"hdfs.port": "x"}, "hdfs:///k", "must be a number"),
    ],
)
def test_settings_that_make_no_sense_are_for_the_operator(
    storage: dict[str, str], location: str, reason: str
) -> None:
    with pytest.raises(
        FilesUnavailable,
        match=f"^(?=Cannot open ).*{reason}.* has to mend that: for a warehouse, the operator",
    ):
        files_for(storage).read(Location(location))


@pytest.mark.parametrize(
    ("root", "storage", "reason"),
    [
        ("s3://bucket/k", {"s3.access-key-id": "a"}, "go together"),
        ("s3a://bucket/k", {"s3.endpoint": "ftp://x"}, "like https://host:port"),
        ("s3://bucket/k", {"s3.endpoint": "http://[x"}, "Cannot open the store of s3 locations"),
        ("s3://bucket/k", {"s3.path-style-access": "maybe"}, "must be true or false"),
        ("s3://bucket/k", {"s3.connect-timeout": "soon"}, "must be a number"),
        ("gs://bucket/k", {"gcs.oauth2.token": "t"}, "token-expires-at"),
        (
            "gs://bucket/k",
            {"gcs.oauth2.token": "t", "gcs.oauth2.token-expires-at": "1e20"},
            "Cannot open the store of gs locations",
        ),
        ("abfss://c@a.dfs.core.windows.net/k", {"adls.account-key": "!!"}, "not Base64"),
        ("wasb://c@a.dfs.core.windows.net/k", {"adls.dfs-storage-authority": ":x"}, "must be like"),
    ],
)
def test_settings_that_make_no_sense_are_refused_when_they_are_given(
    root: str, storage: dict[str, str], reason: str
) -> None:
    with pytest.raises(InvalidSetting, match=reason):
        check_storage(root, storage)


def test_settings_of_another_store_than_the_roots_are_not_looked_at() -> None:
    check_storage("file:///wh", {"s3.path-style-access": "maybe"})
    check_storage("s3://bucket/k", {"s3.region": "here", "gcs.oauth2.token": "t"})


def test_a_setting_of_one_store_does_not_disturb_another() -> None:
    with pytest.raises(FileMissing):
        files_for({"s3.endpoint": "ftp://x"}).read(Location("/no/such/file"))


def test_a_password_in_an_endpoint_is_refused_and_not_repeated() -> None:
    with pytest.raises(FilesUnavailable) as raised:
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


@pytest.mark.parametrize(
    ("storage", "location"),
    [
        ({"s3.path-style-access": "env:ICETOWER_SECRET_W"}, "s3://bucket/k"),
        ({"s3.connect-timeout": "env:ICETOWER_SECRET_W"}, "s3://bucket/k"),
        ({"s3.retry.num-retries": "env:ICETOWER_SECRET_W"}, "s3://bucket/k"),
        ({"s3.anonymous": "env:ICETOWER_SECRET_W"}, "s3://bucket/k"),
        ({"s3.endpoint": "env:ICETOWER_SECRET_W"}, "s3://bucket/k"),
        ({"gcs.no-auth": "env:ICETOWER_SECRET_W"}, "gs://bucket/k"),
        ({"gcs.oauth2.token": "t", "gcs.oauth2.token-expires-at": "env:ICETOWER_SECRET_W"}, "gs://bucket/k"),
        ({"adls.account-key": "env:ICETOWER_SECRET_W"}, "abfss://c@a.dfs.core.windows.net/k"),
        ({"adls.account-name": "env:ICETOWER_SECRET_W"}, "abfss://c/k"),
        ({"adls.blob-storage-scheme": "env:ICETOWER_SECRET_W"}, "abfss://c@a.dfs.core.windows.net/k"),
        ({"adls.dfs-storage-authority": "env:ICETOWER_SECRET_W"}, "abfss://c@a.dfs.core.windows.net/k"),
        ({"hdfs.port": "env:ICETOWER_SECRET_W"}, "hdfs:///k"),
        ({"hdfs.host": "env:ICETOWER_SECRET_W"}, "hdfs:///k"),
    ],
)
def test_no_error_and_no_log_shows_what_the_environment_holds(
    monkeypatch: pytest.MonkeyPatch, storage: dict[str, str], location: str
) -> None:
    monkeypatch.setenv("ICETOWER_SECRET_W", "ftp://top!s?cret/x")

    with pytest.raises(IcetowerError) as refused:
        files_for({"s3.region": "here", "s3.request-timeout": "0.2", **storage}, SECRETS).read(
            Location(location)
        )

    logged = "".join(traceback.format_exception(refused.value))
    assert "cret" not in logged.replace("SECRET", "").replace("secret", "").lower()


@pytest.mark.parametrize(
    ("storage", "location", "refusal"),
    [
        ({"adls.blob-storage-authority": ":x"}, "abfss://c@a.dfs.core.windows.net/k", "must be like"),
        ({"adls.dfs-storage-authority": ".x:99999"}, "abfss://c@a.dfs.core.windows.net/k", "must be like"),
        ({"adls.dfs-storage-authority": "http://x"}, "abfss://c@a.dfs.core.windows.net/k", "must be like"),
        ({"adls.account-name": "a:b"}, "abfss://c/k", "expected abfss"),
        ({}, "abfss://c@a:b.dfs.core.windows.net/k", "expected abfss"),
        ({}, "abfss://c@a.dfs.core.windows.net:port/k", "expected abfss"),
        ({}, "abfss://c@a..net/k", "expected abfss"),
    ],
)
def test_host_that_would_end_the_process_is_refused(
    storage: dict[str, str], location: str, refusal: str
) -> None:
    with pytest.raises(IcetowerError, match=refusal):
        files_for({"adls.account-key": "a2V5", **storage}).read(Location(location))


def test_the_operators_own_settings_are_for_the_operators_host_in_azure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who makes a warehouse chooses its root, and there that is where secrets are sent."""
    monkeypatch.setenv("ANY_SECRET", "sv=hunter2")
    own = {"adls.sas-token": "env:ANY_SECRET"}
    environment = StorageEnvironment((), own, "abfss://lake@acct.dfs.core.windows.net/tables")

    check_storage("abfss://other@ACCT.dfs.core.windows.net/tables", own, environment)
    check_storage("abfss://other/tables", own, environment)
    for host in ("acct.dfs.evil.example", "evil.dfs.core.windows.net"):
        for scheme in ("abfs", "wasbs"):
            with pytest.raises(InvalidSetting, match="may not read environment variable ANY_SECRET"):
                check_storage(f"{scheme}://lake@{host}/tables", own, environment)
