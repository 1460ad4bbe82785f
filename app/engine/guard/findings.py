"""Findings of the guard, and what it could not check."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.engine.model.files.manifests import ManifestEntry, ManifestFile
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.settings.guard_settings import FindingKind
from app.engine.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of a new snapshot that no correct writer causes; `message` has no full stop."""

    kind: FindingKind
    message: str
    snapshot_id: SnapshotId
    file: Location | None = None


@dataclass(frozen=True, slots=True)
class SkippedCheck:
    """Something that the guard could not check, and why. It need not be wrong."""

    snapshot_id: SnapshotId
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """The findings in one snapshot, and what could not be checked."""

    findings: tuple[Finding, ...] = ()
    unchecked: tuple[SkippedCheck, ...] = ()


class BudgetedManifests(Protocol):
    """Manifests within a budget of bytes to read; those in memory cost nothing."""

    def manifests(self, snapshot: Snapshot) -> Sequence[ManifestFile] | None:
        """Return a snapshot's manifests in the order of its list; None if the budget is too small.

        Raises:
            InvalidMetadata: the manifest list is not one.
            InvalidLocation: the manifest list is where it may not be read.
            FileMissing: the manifest list is surely gone.
            FilesUnavailable: the store does not answer.
        """
        ...

    def entries(self, manifest: ManifestFile) -> Iterable[ManifestEntry] | None:
        """Return a manifest's entries of every status; None if the budget is too small.

        Raises:
            InvalidMetadata: the manifest is not one, or contradicts the list.
            InvalidLocation: the manifest is where it may not be read.
            FileMissing: the manifest is surely gone.
            FilesUnavailable: the store does not answer.
        """
        ...

    def exists(self, location: Location) -> bool | None:
        """Return whether a file exists, without reading it; None if too many were asked for.

        Raises:
            InvalidLocation: it is where it may not be looked for.
            FilesUnavailable: the store does not answer.
        """
        ...
