"""From which figures on a table needs upkeep. docs/health.md says whose rule each of them is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class HealthThresholds:
    """The limits that findings are made of. Each may be set by its name with hyphens."""

    least_files: float = 10
    """Tables with so few files, data or delete, have no finding about them."""
    tiny_average_bytes: float = 1 << 20
    """Data files that are smaller on average are critical."""
    small_average_bytes: float = 8 << 20
    """Data files that are smaller on average are worth a warning."""
    small_files_in_partition: float = 100
    """More small files in one partition are worth a warning."""
    delete_files_critical_ratio: float = 0.5
    """More delete files for each data file are critical."""
    delete_files_warning: float = 100
    """More delete files are worth a warning; more than `least_files` are worth knowing."""
    deleted_positions_ratio: float = 0.2
    """More deleted positions for each row are worth a warning."""
    equality_deletes_ratio: float = 0.1
    """More equality deletes for each row are worth a warning."""
    snapshots_warning: float = 100
    snapshots_critical: float = 500
    unpartitioned_files: float = 100
    """More data files without partitions are worth knowing."""
    partition_skew: float = 10
    """A largest partition of so many median ones is worth knowing."""
    partition_specs: float = 3
    schemas: float = 10
    metadata_log_entries: float = 100
    metadata_bytes: float = 8 << 20
    """Clients read all of the metadata with each load: more is worth a warning."""
    small_manifests: float = 100
    """More manifests below half of the target are worth a warning."""
    manifest_overlap: float = 10
    """More manifests for a partition value, of at least twice as many manifests, are worth a warning."""
    unwritten_days: float = 90
    attempts_a_commit: float = 2

    @classmethod
    def of(cls, changed: Mapping[str, str]) -> HealthThresholds:
        """Return the defaults with some of them replaced.

        Args:
            changed: numbers of 0 or more, by names with hyphens.

        Raises:
            ValueError: a name is not known, or a value is not such a number.
        """
        known = {field.name.replace("_", "-"): field.name for field in fields(cls)}
        values: dict[str, float] = {}
        for name, text in changed.items():
            if name not in known:
                raise ValueError(f"there is no threshold {name[:100]!r}; known are {', '.join(known)}")
            values[known[name]] = _number(name, text)
        return replace(cls(), **values)


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise ValueError(f"{name} must be a number of 0 or more, found {text[:100]!r}")
    return number


DEFAULT_THRESHOLDS: Final = HealthThresholds()
