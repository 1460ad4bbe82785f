"""How the clients of a table try again, by its properties."""

from __future__ import annotations

from collections.abc import Mapping

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.slots.queue import RetryRules
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.settings.properties import int_property
from app.errors import InvalidUpdate

_DEFAULT = RetryRules()


def load_retries(catalog: Catalog, identifier: TableIdentifier) -> tuple[int, RetryRules, int]:
    """Return a pointer's id, how clients of its table try again, its last sequence number.

    Raises:
        NoSuchTable: no table has this name any more.
        MetadataFileMissing, CorruptMetadata, FilesUnavailable: its metadata cannot be read.
        DatabaseUnavailable: the database does not answer.
    """
    catalog.permit("commit_table", identifier)
    pointer, metadata = catalog.read_now(TABLES, identifier)
    return pointer.id, retries_of(metadata.properties), metadata.last_sequence


def retries_of(properties: Mapping[str, str]) -> RetryRules:
    """Return what a table's `commit.retry.*` properties say, or the clients' defaults."""
    return RetryRules(
        count=_count(properties, "commit.retry.num-retries", _DEFAULT.count),
        min_wait_ms=_count(properties, "commit.retry.min-wait-ms", _DEFAULT.min_wait_ms),
        max_wait_ms=_count(properties, "commit.retry.max-wait-ms", _DEFAULT.max_wait_ms),
    )


def _count(properties: Mapping[str, str], name: str, default: int) -> int:
    try:
        return max(0, int_property(properties, name, default))
    except InvalidUpdate:
        return default
