"""HDFS: storage settings in, a store over WebHDFS out. Nothing of Hadoop is needed on the machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from app.engine.model.ids import Location
from app.errors import InvalidLocation, InvalidSetting
from app.fileio.locations import bucket_and_key
from app.fileio.network.hdfs_calls import HdfsCalls
from app.fileio.network.hdfs_store import HdfsStore
from app.fileio.storage_settings import StorageSettings

SETTINGS = frozenset(
    {
        "hdfs.endpoint",
        "hdfs.host",
        "hdfs.port",
        "hdfs.user",
        "hdfs.delegation-token",
        "hdfs.connect-timeout",
        "hdfs.request-timeout",
        "hdfs.kerberos_ticket",
    }
)

_CONNECT_SECONDS = 2.0
_REQUEST_SECONDS = 8.0
_HTTP_PORTS = {"http": 9870, "https": 9871}
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class HdfsCluster:
    """The one cluster of a warehouse's settings: how locations name it, and where it listens.

    Attributes:
        endpoints: `http://host:port` of each name node, or of a gateway.
        host: the host, or the name service, that locations have; empty if those of the endpoints.
        port: the port that locations have; None for any.
    """

    endpoints: tuple[str, ...]
    host: str
    port: int | None

    def check(self, location: str) -> None:
        """Check that a location is one of this cluster: a request must not go to the wrong one.

        Raises:
            InvalidLocation: it names another.
        """
        authority = bucket_and_key(location)[0].lower()
        host, _, port = authority.partition(":")
        hosts = {self.host} if self.host else {urlsplit(each).hostname for each in self.endpoints}
        is_right_port = self.port is None or port in {"", str(self.port)}
        if authority and not (host in hosts and is_right_port and (not port or port.isdecimal())):
            raise InvalidLocation(
                f"Cannot use {location[:500]}: the storage settings are those of another HDFS; hdfs.host and hdfs.port "
                "say how locations name it"
            )


def open_hdfs(settings: StorageSettings) -> HdfsStore:
    """Return the store of `hdfs.` settings; raises `InvalidSetting`."""
    cluster = cluster_of(settings)
    identity = {
        "user.name": settings.find("hdfs.user"),
        "delegation": settings.find("hdfs.delegation-token"),
    }
    calls = HdfsCalls(
        cluster.endpoints,
        {name: value for name, value in identity.items() if value is not None},
        connect_s=settings.read_number("hdfs.connect-timeout", _CONNECT_SECONDS),
        request_s=settings.read_number("hdfs.request-timeout", _REQUEST_SECONDS),
    )

    def path_of(location: Location) -> str:
        cluster.check(location)
        return bucket_and_key(location)[1]

    return HdfsStore(calls, path_of, secrets=settings.secrets)


def cluster_of(settings: StorageSettings) -> HdfsCluster:
    """Return the cluster that settings describe.

    Raises:
        InvalidSetting: they make no sense, lack the endpoint, or ask for Kerberos.
    """
    if settings.find("hdfs.kerberos_ticket"):
        raise InvalidSetting(
            "Storage setting hdfs.kerberos_ticket cannot be used: the server reaches HDFS over WebHDFS and does not "
            "speak Kerberos; give it a delegation token (hdfs.delegation-token), or a gateway with simple "
            "authentication (hdfs.endpoint)"
        )
    if settings.find("hdfs.user") and settings.find("hdfs.delegation-token"):
        raise InvalidSetting(
            "Storage settings hdfs.user and hdfs.delegation-token do not go together: a token is its owner's"
        )
    host = (settings.find("hdfs.host") or "").lower()
    if host and not _HOST.fullmatch(host):
        raise InvalidSetting("Storage setting hdfs.host must be a host, or the name of a name service")
    port = settings.read_number("hdfs.port", 0)
    if port != int(port) or port > 65_535:
        raise InvalidSetting("Storage setting hdfs.port must be a port")
    given = settings.find("hdfs.endpoint")
    if given is None and not host:
        raise InvalidSetting(
            "HDFS needs storage setting hdfs.endpoint: where its WebHDFS listens, like http://namenode:9870"
        )
    texts = [f"http://{host}"] if given is None else given.split(",")
    return HdfsCluster(tuple(_endpoint(text.strip()) for text in texts), host, int(port) or None)


def _endpoint(text: str) -> str:
    """Return `scheme://host:port` of what a setting says."""
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
    except ValueError:
        raise InvalidSetting("Storage setting hdfs.endpoint has a port that is none") from None
    if "@" in parts.netloc:
        raise InvalidSetting("Storage setting hdfs.endpoint must not carry a user and password")
    is_address = parts.scheme in _HTTP_PORTS and _HOST.fullmatch(parts.hostname or "")
    if not is_address or parts.path.strip("/") or parts.query or parts.fragment:
        raise InvalidSetting(
            "Storage setting hdfs.endpoint must be like http://host:port, or several of these with commas between"
        )
    return f"{parts.scheme}://{parts.hostname}:{port or _HTTP_PORTS[parts.scheme]}"
