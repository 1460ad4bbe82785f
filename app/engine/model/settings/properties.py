"""Table properties that the server itself reads: their names, and how values are read."""

from __future__ import annotations

import re
from collections.abc import Mapping

from app.engine.model.document import MAX_LONG
from app.engine.model.schema import Schema
from app.errors import InvalidUpdate

FORMAT_VERSION = "format-version"
METADATA_PATH = "write.metadata.path"
METADATA_COMPRESSION = "write.metadata.compression-codec"
PREVIOUS_VERSIONS_MAX = "write.metadata.previous-versions-max"
DELETE_AFTER_COMMIT = "write.metadata.delete-after-commit.enabled"
GC_ENABLED = "gc.enabled"
PARQUET_COMPRESSION = "write.parquet.compression-codec"
ENCRYPTION_KEY_ID = "encryption.key-id"
COLUMN_METRICS_PREFIX = "write.metadata.metrics.column."
SCAN_PLANNING_MODE = "scan-planning-mode"
VIEW_HISTORY_ENTRIES = "version.history.num-entries"
VIEW_DROP_DIALECT_ALLOWED = "replace.drop-dialect.allowed"

LOCATION_PROPERTIES = (
    "write.data.path",
    METADATA_PATH,
    "write.object-storage.path",
    "write.folder-storage.path",
)
"""Properties that name locations where files of the table are written."""

RESERVED = frozenset(
    {
        FORMAT_VERSION,
        "uuid",
        "snapshot-count",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)
"""Names that clients show like properties; they are never stored."""

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")


def leaves_codec_open(properties: Mapping[str, str]) -> bool:
    """Whether properties say that no codec is chosen for Parquet, not even by default.

    Trino says that with an empty text, and takes it away again. Stored, it would be a codec that does not exist.
    """
    return properties.get(PARQUET_COMPRESSION) == ""


def int_property(properties: Mapping[str, str], name: str, default: int) -> int:
    """Return a whole number.

    Raises:
        InvalidUpdate: the value is not one.
    """
    value = properties.get(name)
    if value is None:
        return default
    # As strict as clients in other languages: no underscores, no spaces, no digits of other scripts.
    if not _WHOLE_NUMBER.fullmatch(value) or not -MAX_LONG <= int(value) <= MAX_LONG:
        raise InvalidUpdate(f"Table property {name} must be a whole number, found {value[:100]!r}")
    return int(value)


def bool_property(properties: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Return a switch; as in the reference, only `true`, in any case, is on."""
    value = properties.get(name)
    return default if value is None else value.strip().lower() == "true"


def allows_deletes(properties: Mapping[str, str]) -> bool:
    """Return whether a table's files may be deleted: `gc.enabled` is `true` or not set."""
    return bool_property(properties, GC_ENABLED, default=True)


def keeping_switch(value: str | None) -> bool:
    """Return a switch that keeps something from being lost.

    A value that makes no sense may have been meant so.
    """
    return value is not None and value.strip().lower() != "false"


def check_column_metrics(properties: Mapping[str, str], schema: Schema) -> None:
    """Check that per-column metrics settings name columns that exist.

    Raises:
        InvalidUpdate: a setting names no column.
    """
    for name in properties:
        column = name.removeprefix(COLUMN_METRICS_PREFIX)
        if column != name and column not in schema.ids_by_name:
            raise InvalidUpdate(
                f"Invalid metrics config, could not find column {column} from table prop {name} in schema"
            )
