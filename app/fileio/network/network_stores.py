"""Stores over a network, by scheme. Importing them brings pyarrow: a quarter of a server's memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from app.engine.model.ids import Location
from app.fileio.failures import opening_failure
from app.fileio.files import FileIO
from app.fileio.locations import scheme_of
from app.fileio.network import adls, gcs, hdfs, s3
from app.fileio.network.hdfs_store import HdfsStore
from app.fileio.network.object_store import ObjectStore
from app.fileio.network.punctual_store import PunctualStore
from app.fileio.storage_settings import StorageSettings

if TYPE_CHECKING:
    from app.fileio.network.azure_store import AzureStore

OPENERS: Final[Mapping[str, Callable[[StorageSettings], ObjectStore | HdfsStore | AzureStore]]] = {
    "s3": s3.open_s3,
    "s3a": s3.open_s3,
    "s3n": s3.open_s3,
    "gs": gcs.open_gcs,
    "abfs": adls.open_adls,
    "abfss": adls.open_adls,
    "wasb": adls.open_adls,
    "wasbs": adls.open_adls,
    "hdfs": hdfs.open_hdfs,
}
_CHECKS: Final[Mapping[object, Callable[[StorageSettings], object]]] = {
    s3.open_s3: s3.arguments_of,
    gcs.open_gcs: gcs.arguments_of,
    adls.open_adls: adls.check_settings,
}
"""What finds out, without the store, that settings make no sense."""
SETTINGS: Final = s3.SETTINGS | gcs.SETTINGS | adls.SETTINGS | hdfs.SETTINGS


def open_store(location: Location, settings: StorageSettings, answer_s: float) -> FileIO:
    """Open the store of a location.

    Raises:
        InvalidSetting: the settings make no sense.
        FilesUnavailable: the store cannot be opened.
    """
    scheme = scheme_of(location)
    try:
        return PunctualStore(OPENERS[scheme](settings), answer_s)
    except (OSError, ValueError, OverflowError, ImportError) as error:
        raise opening_failure(scheme, settings.secrets, error) from error


def check_settings(root: str, settings: StorageSettings) -> None:
    """Check what can be known of a warehouse's storage settings without asking its store.

    Raises:
        InvalidSetting: they make no sense.
        InvalidLocation: they are of another store than the root.
    """
    scheme = scheme_of(root)
    if scheme == "hdfs":
        hdfs.cluster_of(settings).check(root)
    check = _CHECKS.get(OPENERS.get(scheme))
    if check is not None:
        try:
            check(settings)
        except (ValueError, OverflowError) as error:
            raise opening_failure(scheme, settings.secrets, error) from error
