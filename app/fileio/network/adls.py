"""Azure Data Lake Storage and Blob Storage: storage settings in, an AzureStore out."""

from __future__ import annotations

import base64
import functools
import re
from typing import TYPE_CHECKING

from app.engine.model.ids import Location
from app.errors import InvalidLocation, InvalidSetting
from app.fileio.locations import bucket_and_key, is_key
from app.fileio.storage_settings import StorageSettings

if TYPE_CHECKING:
    from azure.storage.blob import BlobServiceClient

    from app.fileio.network.azure_store import AzureStore, Blob

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

_KEYS = ("adls.account-key", "adls.auth.shared-key.account.key")
_IDENTITY = ("adls.tenant-id", "adls.client-id", "adls.client-secret")
_MOST_ACCOUNTS = 32
_CLOUD = "core.windows.net"

_HOST = re.compile(r"[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*")
_TENANT = re.compile(r"[A-Za-z0-9.-]+")
_AUTHORITY = re.compile(rf"\.?{_HOST.pattern}(?::([0-9]{{1,5}}))?")


def open_adls(settings: StorageSettings) -> AzureStore:
    """Return the store of `adls.` settings; without keys, with Azure's default credentials."""
    check_settings(settings)
    # Its library takes half a second to import: only for those who use it.
    from app.fileio.network.azure_store import AzureStore, Blob, open_service

    @functools.lru_cache(maxsize=_MOST_ACCOUNTS)
    def service_of(account: str, domain: str) -> BlobServiceClient:
        return open_service(_url(settings, account, domain), _credential(settings, account))

    def locate(location: Location) -> Blob:
        authority, path = bucket_and_key(location)
        container, _, host = authority.partition("@")
        account, _, domain = host.partition(".")
        account = account or settings.find("adls.account-name", "adls.auth.shared-key.account.name") or ""
        if (
            not container
            or not _HOST.fullmatch(f"{account}.{domain}" if domain else account)
            or not is_key(f"{container}/{path}")
        ):
            raise InvalidLocation(f"Cannot use {location!r}; expected abfss://container@account.host/path")
        return Blob(service_of(account, domain), container, path)

    return AzureStore(locate, secrets=settings.secrets)


def check_settings(settings: StorageSettings) -> None:
    """Check that settings make sense; raises `InvalidSetting`."""
    _check_credentials(settings)
    _check_authorities(settings)
    for name in ("adls.blob-storage-scheme", "adls.dfs-storage-scheme"):
        if settings.find(name) not in {None, "http", "https"}:
            raise InvalidSetting(f"Storage setting {name} must be http or https")


def _check_credentials(settings: StorageSettings) -> None:
    key = settings.find(*_KEYS)
    if key is not None and settings.find("adls.sas-token") is not None:
        raise InvalidSetting("Storage settings adls.account-key and adls.sas-token do not go together")
    identity = [name for name in _IDENTITY if settings.find(name)]
    if identity and identity not in ([*_IDENTITY], ["adls.client-id"]):
        raise InvalidSetting(
            f"Storage settings {', '.join(_IDENTITY)} go together; adls.client-id alone is a managed identity"
        )
    if not _TENANT.fullmatch(settings.find("adls.tenant-id") or "common"):
        raise InvalidSetting("Storage setting adls.tenant-id must be a tenant's id or domain name")
    has_plain_credentials = not identity and (key is not None or settings.find("adls.sas-token") is not None)
    if settings.find("adls.blob-storage-scheme") == "http" and not has_plain_credentials:
        raise InvalidSetting(
            "Storage setting adls.blob-storage-scheme = http needs adls.account-key or adls.sas-token, and no "
            "adls.client-id: identities are only shown over https"
        )
    try:
        base64.b64decode(key or "", validate=True)
    except ValueError as error:
        raise InvalidSetting("Storage setting adls.account-key is not Base64") from error


def _check_authorities(settings: StorageSettings) -> None:
    for name in ("adls.blob-storage-authority", "adls.dfs-storage-authority"):
        match = _AUTHORITY.fullmatch(settings.find(name) or "host")
        if match is None or int(match[1] or 0) >= 1 << 16:
            raise InvalidSetting(f"Storage setting {name} must be like .blob.core.windows.net or host:port")


def _url(settings: StorageSettings, account: str, domain: str) -> str:
    """Return where the blobs of an account are."""
    scheme = settings.find("adls.blob-storage-scheme") or "https"
    # `dfs.core.windows.net` or `blob.core.windows.net`, or those of a sovereign cloud: one account has both.
    _, dot, cloud = domain.partition(".")
    found = settings.find("adls.blob-storage-authority") or f".blob.{cloud if dot else _CLOUD}"
    # An emulator has one host for all accounts.
    return f"{scheme}://{account}{found}" if found.startswith(".") else f"{scheme}://{found}/{account}"


def _credential(settings: StorageSettings, account: str) -> object:
    """Return what shows who asks; an identity comes before a key."""
    from azure import identity
    from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential

    tenant, client, secret = (settings.find(name) for name in _IDENTITY)
    if tenant and client and secret:
        return identity.ClientSecretCredential(tenant, client, secret)
    if client:
        return identity.ManagedIdentityCredential(client_id=client)
    key, token = settings.find(*_KEYS), settings.find("adls.sas-token")
    if key is not None:
        return AzureNamedKeyCredential(account, key)
    if token is not None:
        return AzureSasCredential(token.removeprefix("?"))
    return identity.DefaultAzureCredential()
