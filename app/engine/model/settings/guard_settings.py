"""How strictly the guard checks a table's commits: properties, values, kinds of findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

GUARD = "icetower.guard"
GUARD_IGNORE = "icetower.guard.ignore"


class GuardMode(StrEnum):
    """What becomes of a commit in which the guard finds something."""

    OFF = "off"
    WARN = "warn"
    REJECT = "reject"


class FindingKind(StrEnum):
    """What can be wrong with a new snapshot."""

    DROPPED_FILES = "dropped-files"
    """It says `append`, but files that live in its parent do not live in it."""
    PARENTLESS = "parentless-snapshot"
    """It has no parent, and a branch with a snapshot moves to it without being removed first."""
    BYPASSED_HEAD = "bypassed-head"
    """A branch moves to it from a snapshot that it does not descend from."""
    LOST_DELETES = "lost-deletes"
    """It says `replace`, and moves files to another partition spec, where deletes of theirs do not apply."""
    PARTITION_SPEC = "partition-spec"
    """A manifest that it adds has files of a partition spec that is not, or no more, the table's of that id."""
    SUMMARY_TOTALS = "summary-totals"
    """Its summary's totals changed by more or less than its manifests did."""
    MISSING_FILE = "missing-file"
    """Its manifest list, or a manifest that it adds, does not exist."""
    OUTSIDE_LOCATION = "outside-location"
    """Files that it adds are outside the locations where the table writes."""
    SEQUENCE_NUMBERS = "sequence-numbers"
    """It, or an entry of its manifests, has an impossible sequence number."""


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """The mode, and the kinds of findings that are ignored."""

    mode: GuardMode = GuardMode.WARN
    ignored: frozenset[FindingKind] = frozenset()


def guard_settings(*sources: Mapping[str, str]) -> GuardSettings:
    """Return the settings: each from the first source that has a valid value for it."""
    return GuardSettings(
        next((mode for source in sources if (mode := _mode(source)) is not None), GuardMode.WARN),
        next((kinds for source in sources if (kinds := _ignored(source)) is not None), frozenset()),
    )


def _mode(properties: Mapping[str, str]) -> GuardMode | None:
    value = properties.get(GUARD, "").strip().lower()
    return GuardMode(value) if value in set(GuardMode) else None


def _ignored(properties: Mapping[str, str]) -> frozenset[FindingKind] | None:
    if GUARD_IGNORE not in properties:
        return None
    names = {name.strip().lower() for name in properties[GUARD_IGNORE].split(",")} - {""}
    return frozenset(map(FindingKind, names)) if names <= set(FindingKind) else None
