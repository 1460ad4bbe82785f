"""Reports of orphans: what was found, as it is answered, stored with a run, and read back."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from pydantic import BaseModel, ConfigDict, ValidationError

from app.catalog.deletions.orphan_search import Orphans
from app.engine.model.document import describe_invalid, kebab
from app.errors import InvalidMetadata
from app.fileio.files import ListedFile

SAMPLE = 100
"""How many files a report names."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=kebab, populate_by_name=True)


class OrphanFile(_Part):
    """One orphan."""

    location: str
    size_bytes: int
    modified_ms: int


class OrphanReport(_Part):
    """How many orphans a table has, and some of them."""

    dry_run: bool
    older_than_ms: int
    places: list[str]
    """The folders that were searched."""
    listed_files: int
    reached_files: int
    """How many files the table reaches, now and earlier."""
    staying_files: dict[str, int]
    """How many listed files are no orphans, by reason."""
    orphan_files: int
    orphan_bytes: int
    is_complete: bool
    """False if there are more than one run marks."""
    sample: list[OrphanFile]
    files_deleted_after_ms: int | None = None
    """When deletion may begin; None if nothing was marked."""

    def to_json(self) -> str:
        """Return the text that is answered and stored."""
        return self.model_dump_json(by_alias=True, exclude_none=True)

    @staticmethod
    def from_json(text: str) -> OrphanReport:
        """Read the text that was stored.

        Raises:
            InvalidMetadata: it was not written by this server.
        """
        try:
            return OrphanReport.model_validate_json(text)
        except ValidationError as error:
            raise InvalidMetadata(f"Cannot read a report of orphans: {describe_invalid(error)}") from error


def report_of(found: Orphans, *, dry_run: bool, deleted_after_ms: int | None = None) -> OrphanReport:
    """Return the report of what was found."""
    return OrphanReport(
        dry_run=dry_run,
        older_than_ms=found.older_than_ms,
        places=found.places,
        listed_files=found.listed_files,
        reached_files=found.reached_files,
        staying_files={why.value: number for why, number in sorted(found.stays.items())},
        orphan_files=len(found.files),
        orphan_bytes=found.size_bytes,
        is_complete=found.is_complete,
        sample=sample_of(found.files.values()),
        files_deleted_after_ms=deleted_after_ms,
    )


def sample_of(files: Iterable[ListedFile]) -> list[OrphanFile]:
    """Return some files as a report shows them."""
    return [
        OrphanFile(location=file.location, size_bytes=file.size_bytes, modified_ms=file.modified_ms)
        for file in islice(files, SAMPLE)
    ]
