"""Google Cloud Storage: storage settings in, an ObjectStore out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from pyarrow import fs

from app.engine.model.ids import Location
from app.errors import InvalidLocation, InvalidSetting
from app.fileio.locations import bucket_and_key, is_key
from app.fileio.network.object_store import ObjectStore, Place
from app.fileio.storage_settings import StorageSettings

SETTINGS = frozenset(
    {
        "gcs.project-id",
        "gcs.oauth2.token",
        "gcs.oauth2.token-expires-at",
        "gcs.service.host",
        "gcs.no-auth",
    }
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# How long transient failures are retried. The two minutes for a silent server are fixed in pyarrow.
_RETRY_TIME = timedelta(seconds=5)


def open_gcs(settings: StorageSettings) -> ObjectStore:
    """Return the store of `gcs.` settings; without a token, with Google's default credentials."""
    filesystem = fs.GcsFileSystem(**arguments_of(settings))

    def locate(location: Location) -> Place:
        bucket, key = bucket_and_key(location)
        if not bucket or not is_key(key):
            raise InvalidLocation(f"Not a bucket and a key: {location!r}")
        return Place(filesystem, f"{bucket}/{key}" if key else bucket)

    # pyarrow (26) leaves out the folders that Google names beside a folder's objects.
    return ObjectStore(locate, secrets=settings.secrets, lists_folders=False)


def arguments_of(settings: StorageSettings) -> dict[str, Any]:
    """Return what pyarrow is given; raises `InvalidSetting`, or what Python says of a value."""
    arguments: dict[str, Any] = {"retry_time_limit": _RETRY_TIME}
    arguments["project_id"] = settings.find("gcs.project-id")
    token = settings.find("gcs.oauth2.token")
    if settings.find_flag("gcs.no-auth"):
        arguments["anonymous"] = True
    elif token is not None:
        expires_ms = settings.read_number("gcs.oauth2.token-expires-at", -1)  # epoch milliseconds
        if expires_ms < 0:
            raise InvalidSetting("Storage setting gcs.oauth2.token needs gcs.oauth2.token-expires-at")
        arguments["access_token"] = token
        arguments["credential_token_expiration"] = _EPOCH + timedelta(milliseconds=expires_ms)
    host = settings.find("gcs.service.host")
    if host is not None:
        parts = urlsplit(host if "://" in host else f"https://{host}")
        arguments["scheme"], arguments["endpoint_override"] = parts.scheme, parts.netloc
    return arguments
