"""Records of expiries in the queue: all that deletion needs, without older metadata files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, ValidationError

from app.engine.model.document import INT, Long, describe_invalid
from app.engine.model.ids import Location, SchemaId, SpecId
from app.engine.model.snapshot import Snapshot
from app.engine.retention.expired_snapshots import Expiry
from app.engine.retention.reachability import CleanupLevel, Expired, FileKind, FoundFile
from app.errors import InvalidMetadata


class _Statistics(BaseModel):
    path: Location
    size: Long | None = None


class _Stored(BaseModel):
    """The JSON of a record."""

    model_config = ConfigDict(frozen=True)

    key: str | None = None
    cleanup: CleanupLevel
    delete_after_ms: Long | None = None
    snapshots: tuple[Snapshot, ...]
    statistics: tuple[_Statistics, ...] = ()
    refs: tuple[str, ...] = ()
    specs: tuple[Annotated[SpecId, INT], ...] = ()
    schemas: tuple[Annotated[SchemaId, INT], ...] = ()


_OF_SNAPSHOTS = {"snapshot_id", "timestamp_ms", "manifest_list", "manifests"}
_WRITTEN = dict.fromkeys(_Stored.model_fields, True) | {"snapshots": {"__all__": _OF_SNAPSHOTS}}


@dataclass(frozen=True, slots=True)
class ExpiryRecord:
    """What one expiry took out of a table, and its cleanup level."""

    key: str | None
    """The Idempotency-Key of the request, if it had one."""
    cleanup: CleanupLevel
    delete_after_ms: int | None
    expired: Expired
    expiry: Expiry

    def to_json(self) -> str:
        """Return the text for the queue; of each snapshot only what names its manifests."""
        stored = _Stored.model_construct(
            key=self.key,
            cleanup=self.cleanup,
            delete_after_ms=self.delete_after_ms,
            snapshots=self.expired.snapshots,
            statistics=tuple(
                _Statistics.model_construct(path=item.location, size=item.size_bytes)
                for item in self.expired.statistics
            ),
            refs=self.expiry.ref_names,
            specs=self.expiry.spec_ids,
            schemas=self.expiry.schema_ids,
        )
        return stored.model_dump_json(include=_WRITTEN, exclude_none=True, by_alias=True)

    @staticmethod
    def from_json(text: str) -> ExpiryRecord:
        """Read the text that the queue kept.

        Raises:
            InvalidMetadata: the text was not written by this server.
        """
        try:
            stored = _Stored.model_validate_json(text)
        except ValidationError as error:
            raise InvalidMetadata(
                f"Cannot read what an expiry left in the queue: {describe_invalid(error)}"
            ) from error
        statistics = (FoundFile(item.path, FileKind.STATISTICS, item.size) for item in stored.statistics)
        return ExpiryRecord(
            stored.key,
            stored.cleanup,
            stored.delete_after_ms,
            Expired(stored.snapshots, tuple(statistics)),
            Expiry(stored.snapshots, stored.refs, stored.specs, stored.schemas),
        )
