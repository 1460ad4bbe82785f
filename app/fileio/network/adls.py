"""Azure Data Lake Storage and Blob Storage: storage settings in, an ObjectStore out."""

from __future__ import annotations

import base64
import functools
import re
from typing import Any

from pyarrow import fs

from app.engine.model.ids import Location
from app.errors import InvalidLocation, InvalidSetting
from app.fileio.failures import opening_failure
from app.fileio.locations import bucket_and_key, is_key
from app.fileio.network.object_store import ObjectStore, Place
from app.fileio.storage_settings import StorageSettings

SETTINGS = frozenset(
    {
        "adls.account-name",
        "adls.auth.shared-key.account.name",
        "adls.account-key",
        "adls.auth.shared-key.account.key",
        "adls.sas-token",
        "adls.tenant-id",
        "adls.client-id",
        "adls.client-secret",
        "adls.blob-storage-authority",
        "adls.blob-storage-scheme",
        "adls.dfs-storage-authority",
        "adls.dfs-storage-scheme",
    }
)

_MOST_ACCOUNTS = 32

# Azure's library ends the whole process when it reads a host that is none, or a port that is no number.
_HOST = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
_AUTHORITY = re.compile(rf"\.?{_HOST.pattern}(?::([0-9]{{1,5}}))?")


def open_adls(settings: StorageSettings) -> ObjectStore:
    """Return the store of `adls.` settings; without keys, with Azure's default credentials."""
    key = settings.find("adls.account-key", "adls.auth.shared-key.account.key")
    check_settings(settings)

    @functools.lru_cache(maxsize=_MOST_ACCOUNTS)
    def filesystem_of(account: str, domain: str) -> Any:
        try:
            return fs.AzureFileSystem(account, **_arguments(settings, key, domain))
        except (OSError, ValueError) as error:
            raise opening_failure("abfs", settings.secrets, error) from error

    def locate(location: Location) -> Place:
        authority, path = bucket_and_key(location)
        container, _, host = authority.partition("@")
        account, _, domain = host.partition(".")
        account = account or settings.find("adls.account-name", "adls.auth.shared-key.account.name") or ""
        if (
            not container
            or not _HOST.fullmatch(f"{account}.{domain}" if domain else account)
            or not is_key(path)
        ):
            raise InvalidLocation(f"Cannot use {location!r}; expected abfss://container@account.host/path")
        return Place(filesystem_of(account, domain), f"{container}/{path}" if path else container)

    return ObjectStore(locate, secrets=settings.secrets, leaves_partial_files=True)


def check_settings(settings: StorageSettings) -> None:
    """Refuse what would end the process; raises `InvalidSetting`."""
    _check_key(settings.find("adls.account-key", "adls.auth.shared-key.account.key"))
    _check_authorities(settings)


def _check_key(key: str | None) -> None:
    """Refuse what is not Base64: Azure's library would end the whole process."""
    try:
        base64.b64decode(key or "", validate=True)
    except ValueError as error:
        raise InvalidSetting("Storage setting adls.account-key is not Base64") from error


def _check_authorities(settings: StorageSettings) -> None:
    for name in ("adls.blob-storage-authority", "adls.dfs-storage-authority"):
        match = _AUTHORITY.fullmatch(settings.find(name) or "host")
        if match is None or int(match[1] or 0) >= 1 << 16:
            raise InvalidSetting(f"Storage setting {name} must be like .blob.core.windows.net or host:port")


def _arguments(settings: StorageSettings, key: str | None, domain: str) -> dict[str, Any]:
    # `dfs.core.windows.net` or `blob.core.windows.net`, or those of a sovereign cloud: one account has both.
    _, dot, cloud = domain.partition(".")
    arguments = {
        "account_key": key,
        "sas_token": settings.find("adls.sas-token"),
        "tenant_id": settings.find("adls.tenant-id"),
        "client_id": settings.find("adls.client-id"),
        "client_secret": settings.find("adls.client-secret"),
        "blob_storage_authority": settings.find("adls.blob-storage-authority")
        or (f".blob.{cloud}" if dot else None),
        "blob_storage_scheme": settings.find("adls.blob-storage-scheme"),
        "dfs_storage_authority": settings.find("adls.dfs-storage-authority")
        or (f".dfs.{cloud}" if dot else None),
        "dfs_storage_scheme": settings.find("adls.dfs-storage-scheme"),
    }
    return {name: value for name, value in arguments.items() if value is not None}
