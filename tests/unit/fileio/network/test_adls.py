"""Where the blobs of an account are, and which settings are refused."""

from __future__ import annotations

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.identity import ClientSecretCredential, DefaultAzureCredential, ManagedIdentityCredential

from app.errors import InvalidSetting
from app.fileio.network import adls
from app.fileio.storage_settings import StorageSettings


@pytest.mark.parametrize(
    ("settings", "domain", "url"),
    [
        ({}, "", "https://acct.blob.core.windows.net"),
        ({}, "dfs.core.windows.net", "https://acct.blob.core.windows.net"),
        ({}, "blob.core.windows.net", "https://acct.blob.core.windows.net"),
        ({}, "dfs.core.chinacloudapi.cn", "https://acct.blob.core.chinacloudapi.cn"),
        ({"adls.blob-storage-authority": ".blob.own"}, "dfs.own", "https://acct.blob.own"),
        (
            {"adls.blob-storage-authority": "127.0.0.1:10000", "adls.blob-storage-scheme": "http"},
            "dfs.core.windows.net",
            "http://127.0.0.1:10000/acct",
        ),
    ],
)
def test_blobs_of_an_account_are_in_its_cloud_or_where_settings_say(
    settings: dict[str, str], domain: str, url: str
) -> None:
    assert adls._url(StorageSettings(settings), "acct", domain) == url


_IDENTITY = {"adls.tenant-id": "t", "adls.client-id": "c", "adls.client-secret": "s"}


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        ({"adls.tenant-id": "t"}, r"adls\.tenant-id, adls\.client-id, adls\.client-secret go together"),
        ({"adls.sas-token": "sig=t", "adls.client-secret": "s"}, "go together"),
        ({"adls.tenant-id": "t", "adls.client-id": "c"}, "adls.client-id alone is a managed identity"),
        ({"adls.account-key": "a2V5", "adls.sas-token": "sig=t"}, "do not go together"),
        ({"adls.account-key": "!"}, "not Base64"),
        ({**_IDENTITY, "adls.tenant-id": "my tenant"}, "must be a tenant's id or domain name"),
        ({"adls.blob-storage-scheme": "http"}, "http needs adls.account-key or adls.sas-token"),
        (
            {**_IDENTITY, "adls.account-key": "a2V5", "adls.blob-storage-scheme": "http"},
            "only shown over https",
        ),
        ({"adls.account-key": "a2V5", "adls.blob-storage-scheme": "ftp"}, "must be http or https"),
        ({"adls.account-key": "a2V5", "adls.dfs-storage-scheme": "HTTP"}, "must be http or https"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, str], refusal: str) -> None:
    with pytest.raises(InvalidSetting, match=refusal):
        adls.open_adls(StorageSettings(settings))


@pytest.mark.parametrize(
    ("settings", "credential"),
    [
        ({"adls.account-key": "a2V5"}, AzureNamedKeyCredential),
        ({"adls.auth.shared-key.account.key": "a2V5"}, AzureNamedKeyCredential),
        ({"adls.sas-token": "?sig=t"}, AzureSasCredential),
        ({**_IDENTITY, "adls.account-key": "a2V5"}, ClientSecretCredential),
        ({"adls.client-id": "c"}, ManagedIdentityCredential),
        ({}, DefaultAzureCredential),
    ],
)
def test_who_asks_is_what_the_settings_say(settings: dict[str, str], credential: type) -> None:
    adls.check_settings(StorageSettings(settings))

    assert type(adls._credential(StorageSettings(settings), "acct")) is credential
