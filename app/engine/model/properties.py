"""Table properties that the server itself reads: their names, and their valid values."""

from __future__ import annotations

import re
from collections.abc import Mapping

from app.engine.model.document import MAX_INT, MAX_LONG
from app.engine.model.guard_settings import flaw_of_guard_settings
from app.engine.model.rebase_settings import flaw_of_rebase_settings
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

_COUNTS = {
    "commit.retry.num-retries": 0,
    "commit.retry.min-wait-ms": 0,
    "commit.retry.max-wait-ms": 0,
    "commit.retry.total-timeout-ms": 0,
    "commit.status-check.num-retries": 0,
    "commit.status-check.min-wait-ms": 0,
    "commit.status-check.max-wait-ms": 0,
    "commit.status-check.total-timeout-ms": 0,
    "commit.manifest.target-size-bytes": 0,
    "commit.manifest.min-count-to-merge": 0,
    PREVIOUS_VERSIONS_MAX: None,
    VIEW_HISTORY_ENTRIES: 1,
}
_LARGE_COUNTS = frozenset({"commit.manifest.target-size-bytes"})
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")
_SWITCHES = frozenset(
    {DELETE_AFTER_COMMIT, GC_ENABLED, "commit.manifest-merge.enabled", VIEW_DROP_DIALECT_ALLOWED}
)
_CODECS = frozenset({"none", "gzip"})
_PLANNING_MODES = ("client", "server")


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


def check_properties(changed: Mapping[str, str]) -> None:
    """Check the values of properties that the server reads, or that make clients fail.

    Raises:
        InvalidUpdate: names the property, the value, and what is expected.
    """
    flaw = flaw_of_guard_settings(changed) or flaw_of_rebase_settings(changed)
    if flaw is not None:
        raise InvalidUpdate(f"Table property {flaw}")
    for name, value in changed.items():
        if name in _COUNTS:
            minimum = _COUNTS[name]
            number = int_property(changed, name, 0)
            if minimum is not None and number < minimum:
                raise InvalidUpdate(f"Table property {name} must be at least {minimum}, found {number}")
            if abs(number) > MAX_INT and name not in _LARGE_COUNTS:
                raise InvalidUpdate(f"Table property {name} must be at most {MAX_INT}, found {number}")
        elif name in _SWITCHES and value.strip().lower() not in ("true", "false"):
            raise InvalidUpdate(f"Table property {name} must be true or false, found {value[:100]!r}")
        elif name == SCAN_PLANNING_MODE:
            check_planning_mode(value)
        elif name == METADATA_COMPRESSION and value.strip().lower() not in _CODECS:
            raise InvalidUpdate(f"Table property {name} must be none or gzip, found {value[:100]!r}")


def check_planning_mode(value: str) -> None:
    """Check who plans scans: clients know two values, in lower case, and fail on others.

    Raises:
        InvalidUpdate: names what is expected.
    """
    if value not in _PLANNING_MODES:
        raise InvalidUpdate(f"Property {SCAN_PLANNING_MODE} must be client or server, found {value[:100]!r}")


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
