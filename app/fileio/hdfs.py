"""HDFS: storage settings in, an ObjectStore out. Needs Hadoop's own client on the machine."""

from __future__ import annotations

import functools
from typing import Any

from pyarrow import fs

from app.engine.model.ids import Location
from app.fileio.failures import opening_failure
from app.fileio.locations import bucket_and_key
from app.fileio.object_store import ObjectStore, Place
from app.fileio.storage_settings import StorageSettings

SETTINGS = frozenset({"hdfs.host", "hdfs.port", "hdfs.user", "hdfs.kerberos_ticket"})

_MOST_CLUSTERS = 8


def open_hdfs(settings: StorageSettings) -> ObjectStore:
    """Return the store of `hdfs.` settings; a host in the location overrides the setting."""

    @functools.lru_cache(maxsize=_MOST_CLUSTERS)
    def filesystem_of(authority: str) -> Any:
        host, _, port = authority.partition(":")
        if not host:
            # 0: what Hadoop's configuration says
            host, port = (
                settings.find("hdfs.host") or "default",
                str(int(settings.read_number("hdfs.port", 0))),
            )
        try:
            return fs.HadoopFileSystem(
                host,
                int(port or 0),
                user=settings.find("hdfs.user"),
                kerb_ticket=settings.find("hdfs.kerberos_ticket"),
            )
        except (OSError, ValueError) as error:
            raise opening_failure("hdfs", settings.secrets, error) from error

    def locate(location: Location) -> Place:
        authority, path = bucket_and_key(location)
        return Place(filesystem_of(authority), f"/{path}")

    return ObjectStore(locate, secrets=settings.secrets, leaves_partial_files=True)
