"""What the settings of each object store become for pyarrow."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyarrow import fs

from app.errors import InvalidSetting
from app.fileio.network import gcs, s3
from app.fileio.storage_settings import StorageSettings


def _s3(**settings: str) -> dict[str, object]:
    return s3.arguments_of(
        StorageSettings({f"s3.{name.replace('_', '-')}": value for name, value in settings.items()})
    )


@pytest.mark.parametrize(
    ("endpoint", "scheme", "authority"),
    [
        ("http://127.0.0.1:9000", "http", "127.0.0.1:9000"),
        ("https://minio.example.com", "https", "minio.example.com"),
        ("https://minio.example.com/", "https", "minio.example.com"),
        ("minio.example.com:9000", "https", "minio.example.com:9000"),
        ("http://[::1]:9000", "http", "[::1]:9000"),
    ],
)
def test_an_endpoint_is_scheme_and_authority(endpoint: str, scheme: str, authority: str) -> None:
    arguments = _s3(endpoint=endpoint)

    assert (arguments["scheme"], arguments["endpoint_override"]) == (scheme, authority)


@pytest.mark.parametrize("endpoint", ["ftp://h", "http://", "http://h/path", "http://h?x=1", "://"])
def test_what_is_no_endpoint_is_refused(endpoint: str) -> None:
    with pytest.raises(InvalidSetting, match=r"s3\.endpoint must be like"):
        _s3(endpoint=endpoint)


def test_another_server_needs_no_region_and_aws_finds_its_own() -> None:
    assert _s3(endpoint="http://h")["region"] == "aws-global"
    assert _s3(endpoint="http://h", region="eu-north-1")["region"] == "eu-north-1"
    assert _s3()["region"] is None
    assert s3.arguments_of(StorageSettings({"client.region": "eu-north-1"}))["region"] == "eu-north-1"


def test_the_bucket_goes_into_the_host_only_where_asked() -> None:
    assert _s3(endpoint="http://h")["force_virtual_addressing"] is False
    assert _s3(endpoint="http://h", path_style_access="true")["force_virtual_addressing"] is False
    assert _s3(endpoint="http://h", path_style_access="false")["force_virtual_addressing"] is True


def test_path_style_on_aws_names_the_regions_endpoint() -> None:
    arguments = _s3(path_style_access="true", region="eu-north-1")

    assert arguments["endpoint_override"] == "s3.eu-north-1.amazonaws.com"
    assert arguments["scheme"] == "https"


def test_keys_come_before_anonymity_and_roles() -> None:
    keys = _s3(access_key_id="a", secret_access_key="b", session_token="c", anonymous="true", role_arn="r")

    assert (keys["access_key"], keys["secret_key"], keys["session_token"]) == ("a", "b", "c")
    assert "anonymous" not in keys
    assert "role_arn" not in keys
    assert _s3(anonymous="true")["anonymous"] is True
    assert _s3(role_arn="r", role_session_name="n")["role_arn"] == "r"
    assert not {"access_key", "anonymous", "role_arn"} & _s3().keys()


def test_timeouts_and_retries_can_be_set() -> None:
    arguments = _s3(connect_timeout="0.5", request_timeout="7")
    retries = s3.arguments_of(StorageSettings({"s3.retry.num-retries": "4"}))["retry_strategy"]

    assert (arguments["connect_timeout"], arguments["request_timeout"]) == (0.5, 7)
    assert retries.max_attempts == 5
    fs.S3FileSystem(
        **s3.arguments_of(StorageSettings({"s3.retry.num-retries": "1e300", "s3.region": "us-east-1"}))
    )


def test_every_argument_is_one_that_pyarrow_takes() -> None:
    fs.S3FileSystem(**_s3(endpoint="http://h", access_key_id="a", secret_access_key="b"))
    fs.S3FileSystem(**_s3(region="us-east-1", anonymous="true"))
    fs.GcsFileSystem(
        **gcs.arguments_of(StorageSettings({"gcs.oauth2.token": "t", "gcs.oauth2.token-expires-at": "0"}))
    )


def test_a_gcs_token_comes_with_its_time() -> None:
    arguments = gcs.arguments_of(
        StorageSettings(
            {"gcs.oauth2.token": "t", "gcs.oauth2.token-expires-at": "86400000", "gcs.project-id": "p"}
        )
    )

    assert arguments["access_token"] == "t"
    assert arguments["credential_token_expiration"] == datetime(1970, 1, 2, tzinfo=UTC)
    assert arguments["project_id"] == "p"


@pytest.mark.parametrize("host", ["http://127.0.0.1:4443", "http://127.0.0.1:4443/"])
def test_a_gcs_host_is_scheme_and_authority(host: str) -> None:
    arguments = gcs.arguments_of(StorageSettings({"gcs.service.host": host, "gcs.no-auth": "true"}))

    assert (arguments["scheme"], arguments["endpoint_override"]) == ("http", "127.0.0.1:4443")
    assert arguments["anonymous"] is True
