"""What the guard found, and what it could not look at: values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.engine.model.guard_settings import FindingKind
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.manifests import ManifestEntry, ManifestFile
from app.engine.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a new snapshot that no sound writer brings about; `message` is a sentence without a stop."""

    kind: FindingKind
    message: str
    snapshot_id: SnapshotId
    file: Location | None = None


@dataclass(frozen=True, slots=True)
class Unchecked:
    """Something that could not be looked at, and why: no sign that anything is wrong with it."""

    snapshot_id: SnapshotId
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """What was found in one snapshot, and what could not be looked at."""

    findings: tuple[Finding, ...] = ()
    unchecked: tuple[Unchecked, ...] = ()


class BudgetedManifests(Protocol):
    """Manifests as far as a budget of bytes reaches; what is at hand costs nothing."""

    def manifests(self, snapshot: Snapshot) -> Sequence[ManifestFile] | None:
        """Return a snapshot's manifests in the order of its list; None when the budget does not reach that far.

        Raises:
            InvalidMetadata: the manifest list is not one.
            InvalidLocation: the manifest list is where it may not be read.
            FileMissing: the manifest list is surely gone.
            FilesUnavailable: the store does not answer.
        """
        ...

    def entries(self, manifest: ManifestFile) -> Iterable[ManifestEntry] | None:
        """Return a manifest's entries of every status; None when the budget does not reach that far.

        Raises:
            InvalidMetadata: the manifest is not one, or contradicts the list.
            InvalidLocation: the manifest is where it may not be read.
            FileMissing: the manifest is surely gone.
            FilesUnavailable: the store does not answer.
        """
        ...

    def exists(self, location: Location) -> bool | None:
        """Tell whether a file is there, reading nothing of it; None when enough has been asked.

        Raises:
            InvalidLocation: it is where it may not be looked for.
            FilesUnavailable: the store does not answer.
        """
        ...
