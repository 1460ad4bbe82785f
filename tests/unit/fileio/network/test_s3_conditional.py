"""Where conditional writes to S3 go: to the same place as what pyarrow reads and writes."""

from __future__ import annotations

import pytest

from app.engine.model.ids import Location
from app.fileio.network.s3 import arguments_of, open_s3
from app.fileio.storage_settings import StorageSettings
from app.fileio.trees import tree_of
from app.tree_errors import TreeRefusal

_KEYS = {"s3.access-key-id": "a", "s3.secret-access-key": "b"}


def _address(bucket: str, **settings: str) -> tuple[bool, str, str]:
    store = open_s3(StorageSettings({**_KEYS, **settings}))
    return store._puts._address(bucket, "t/v1.metadata.json")  # type: ignore[attr-defined, no-any-return]  # an S3Tree


@pytest.mark.parametrize("variable", ["AWS_REGION", "AWS_DEFAULT_REGION"])
def test_a_region_of_the_environment_counts(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv(variable, "eu-west-3")

    assert _address("lake") == (True, "lake.s3.eu-west-3.amazonaws.com", "/t/v1.metadata.json")


def test_settings_come_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-3")

    assert _address("lake", **{"s3.region": "eu-west-1"})[1] == "lake.s3.eu-west-1.amazonaws.com"


def test_regions_of_china_are_where_pyarrow_looks_for_them() -> None:
    settings = {"s3.region": "cn-north-1"}

    assert _address("lake", **settings)[1] == "lake.s3.cn-north-1.amazonaws.com.cn"
    in_path = {**settings, "s3.path-style-access": "true"}
    assert _address("lake", **in_path)[1] == "s3.cn-north-1.amazonaws.com.cn"
    assert arguments_of(StorageSettings(in_path))["endpoint_override"] == "s3.cn-north-1.amazonaws.com.cn"


@pytest.mark.parametrize(
    "settings", [{}, {"s3.endpoint": "https://store:9000", "s3.path-style-access": "false"}]
)
def test_a_bucket_whose_name_has_dots_is_no_host_that_a_certificate_names(settings: dict[str, str]) -> None:
    _, host, path = _address("my.lake", **{"s3.region": "eu-west-1", **settings})

    assert not host.startswith("my.lake")
    assert path == "/my.lake/t/v1.metadata.json"


def test_without_tls_such_a_bucket_is_a_host() -> None:
    settings = {"s3.endpoint": "http://store:9000", "s3.path-style-access": "false"}

    assert _address("my.lake", **settings) == (False, "my.lake.store:9000", "/t/v1.metadata.json")


def test_without_keys_removing_a_folder_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    folder = Location("s3://lake/sales")
    tree = tree_of(open_s3(StorageSettings({"s3.region": "eu-west-1"})), folder)
    monkeypatch.setattr(tree, "list_folder", lambda _location: [])

    with pytest.raises(TreeRefusal, match=r"needs storage settings s3\.access-key-id"):
        tree.remove_folder(folder)
