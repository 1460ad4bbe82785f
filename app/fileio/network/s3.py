"""S3 and stores with its protocol: storage settings in, an ObjectStore out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from pyarrow import fs

from app.engine.model.ids import Location
from app.errors import (
    CommitStateUnknown,
    FileExists,
    FileMissing,
    IcetowerError,
    InvalidLocation,
    InvalidSetting,
)
from app.fileio.locations import bucket_and_key, is_key
from app.fileio.network.object_store import ObjectStore, Place
from app.fileio.network.s3_conditional import ConditionalPuts, ReplyLost, aws_endpoint
from app.fileio.storage_settings import StorageSettings

SETTINGS = frozenset(
    {
        "s3.endpoint",
        "s3.region",
        "client.region",
        "s3.path-style-access",
        "s3.access-key-id",
        "s3.secret-access-key",
        "s3.session-token",
        "s3.anonymous",
        "s3.role-arn",
        "s3.role-session-name",
        "s3.connect-timeout",
        "s3.request-timeout",
        "s3.retry.num-retries",
    }
)

# Seconds without an answer, and tries: a dead endpoint is noticed before a client gives up.
_CONNECT_SECONDS = 2.0
_REQUEST_SECONDS = 3.0
_RETRIES = 2
_MOST_RETRIES = 100

# More would reach into the host name of a request (`bucket.endpoint`).
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]+")


def open_s3(settings: StorageSettings) -> ObjectStore:
    """Return the store of `s3.` settings; without keys, with the usual AWS credentials."""
    filesystem = fs.S3FileSystem(**arguments_of(settings))

    def locate(location: Location) -> Place:
        bucket, key = bucket_and_key(location)
        if not _BUCKET.fullmatch(bucket):
            raise InvalidLocation(f"Not a bucket name: {bucket!r} in {location!r}")
        if not is_key(key):  # the AWS library folds dots: another object than the location names
            raise InvalidLocation(f"Not a key: {key!r} in {location!r}")
        return Place(filesystem, f"{bucket}/{key}" if key else bucket)

    # As pyarrow has found it: in the settings, or as AWS's tools do.
    region = _DEFAULT_REGION if filesystem.region == _FOLLOWS_NO_REDIRECT else filesystem.region
    return S3Tree(locate, ConditionalPuts(settings, region), secrets=settings.secrets)


class S3Tree(ObjectStore):
    """An S3 store that can create a file only if it is absent."""

    def __init__(
        self, locate: Callable[[Location], Place], puts: ConditionalPuts, *, secrets: tuple[str, ...] = ()
    ) -> None:
        super().__init__(locate, secrets=secrets)
        self._puts = puts

    def write_once(self, location: Location, content: bytes) -> None:
        """Put an object if it is absent; raises like `FileTree.write_once`."""
        self._file_at(location)  # refuses what is no object's name
        bucket, key = bucket_and_key(location)
        self._puts.check(bucket, key.rpartition("/")[0] + "/")
        try:
            if not self._puts.put(bucket, key, content):
                raise FileExists(location)
        except ReplyLost as error:
            self._look_for(location, content, error)

    def check_writes_once(self, location: Location) -> None:
        """Try conditional writes once for each bucket; raises like `FileTree.check_writes_once`."""
        bucket, key = bucket_and_key(location.rstrip("/"))
        self._puts.check(bucket, f"{key}/" if key else "")

    def remove_folder(self, location: Location) -> bool:
        """Delete the empty object that stands for a folder; raises like `FileTree.remove_folder`."""
        if self.list_folder(location):
            return False
        bucket, key = bucket_and_key(location.rstrip("/"))
        self._puts.check(bucket, f"{key}/")  # says why, where there are no keys to delete with
        self._puts.delete(bucket, f"{key}/")
        return True

    def _look_for(self, location: Location, content: bytes, lost: ReplyLost) -> None:
        """Return if what is there now is what was to be put."""
        try:
            found = self.read(location)
        except FileMissing as error:
            # The request may still be on its way.
            raise CommitStateUnknown(f"Cannot tell whether {location} was written: {lost}") from error
        except IcetowerError as error:
            raise CommitStateUnknown(
                f"Cannot tell whether {location} was written: {lost}, and it cannot be read: {error}"
            ) from error
        if found != content:
            raise FileExists(location) from lost


_DEFAULT_REGION: Final = "us-east-1"
_FOLLOWS_NO_REDIRECT: Final = "aws-global"
"""AWS's library signs for us-east-1 then. With other regions it follows redirects anywhere, session token included."""


def arguments_of(settings: StorageSettings) -> dict[str, Any]:
    """Return what pyarrow is given; raises `InvalidSetting`, or what Python says of a value."""
    tries = 1 + min(round(settings.read_number("s3.retry.num-retries", _RETRIES)), _MOST_RETRIES)
    return {
        **_endpoint(settings),
        **_credentials(settings),
        "connect_timeout": settings.read_number("s3.connect-timeout", _CONNECT_SECONDS),
        "request_timeout": settings.read_number("s3.request-timeout", _REQUEST_SECONDS),
        "retry_strategy": fs.AwsStandardS3RetryStrategy(max_attempts=tries),
        "allow_delayed_open": True,  # a small file is one request instead of the three of a multipart upload
        # Not for speed: without it, pyarrow (26) publishes the rest of an upload of which a part failed.
        "background_writes": True,
    }


def _endpoint(settings: StorageSettings) -> dict[str, Any]:
    region = settings.find("s3.region", "client.region")
    endpoint = settings.find("s3.endpoint")
    path_style = settings.find_flag("s3.path-style-access")
    if endpoint is None and path_style and region is not None:
        # pyarrow puts the bucket into the path only where the endpoint is named.
        endpoint = aws_endpoint(region)
    if endpoint is None:
        return {"region": region}
    parts = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint}")
    if "@" in parts.netloc:
        raise InvalidSetting("Storage setting s3.endpoint must not carry a user and password")
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path.strip("/") or parts.query:
        raise InvalidSetting("Storage setting s3.endpoint must be like https://host:port")
    return {
        # Other servers rarely care, and looking for one takes seconds.
        "region": _FOLLOWS_NO_REDIRECT if region in (None, _DEFAULT_REGION) else region,
        "scheme": parts.scheme,
        "endpoint_override": parts.netloc,
        "force_virtual_addressing": path_style is False,
    }


def _credentials(settings: StorageSettings) -> dict[str, Any]:
    key, secret = settings.find("s3.access-key-id"), settings.find("s3.secret-access-key")
    if (key is None) != (secret is None):
        raise InvalidSetting(
            "Storage settings s3.access-key-id and s3.secret-access-key go together; one is missing"
        )
    if key is not None:
        return {"access_key": key, "secret_key": secret, "session_token": settings.find("s3.session-token")}
    if settings.find_flag("s3.anonymous"):
        return {"anonymous": True}
    role = settings.find("s3.role-arn")
    if role is not None:
        return {"role_arn": role, "session_name": settings.find("s3.role-session-name") or "icetower"}
    return {}
