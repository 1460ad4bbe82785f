"""Merging manifests as the reference does: which ones, and what becomes of entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.engine.model.ids import SpecId
from app.engine.model.manifests import EntryStatus, ManifestEntry, ManifestFile

_ENABLED: Final = "commit.manifest-merge.enabled"
_MIN_COUNT: Final = "commit.manifest.min-count-to-merge"
_TARGET_BYTES: Final = "commit.manifest.target-size-bytes"


@dataclass(frozen=True, slots=True)
class MergeRules:
    """When manifests are merged, as the table's properties say."""

    is_enabled: bool
    min_count: int
    """So many have to be there before those that an append adds are merged."""
    target_bytes: int
    """No merged manifest is made of more."""

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> MergeRules:
        """Return the rules of a table."""
        return cls(
            properties.get(_ENABLED, "true").lower() != "false",
            _number(properties.get(_MIN_COUNT), 100),
            _number(properties.get(_TARGET_BYTES), 8 << 20),
        )


def _number(text: str | None, otherwise: int) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() else otherwise


def merge_groups(manifests: Sequence[ManifestFile], rules: MergeRules) -> list[list[ManifestFile]]:
    """Return the manifests in groups, each of which becomes one manifest.

    The first manifest is the newest. Groups are filled from the oldest manifests on, so that the one that is not full
    is the newest one, which grows until there are `min_count` manifests in it.
    """
    if not rules.is_enabled or not manifests:
        return [[manifest] for manifest in manifests]
    first = manifests[0]
    by_spec: dict[SpecId, list[ManifestFile]] = {}
    for manifest in manifests:
        by_spec.setdefault(manifest.partition_spec_id, []).append(manifest)
    groups: list[list[ManifestFile]] = []
    for spec_id in sorted(by_spec, reverse=True):
        for packed in _packed_from_end(by_spec[spec_id], rules.target_bytes):
            if packed[0] is first and len(packed) < rules.min_count:
                groups += [[manifest] for manifest in packed]
            else:
                groups.append(packed)
    return groups


def _packed_from_end(manifests: Sequence[ManifestFile], target_bytes: int) -> list[list[ManifestFile]]:
    groups: list[list[ManifestFile]] = []
    size_bytes = 0
    for manifest in reversed(manifests):
        if groups and size_bytes + manifest.manifest_length <= target_bytes:
            groups[-1].append(manifest)
            size_bytes += manifest.manifest_length
        else:
            groups.append([manifest])
            size_bytes = manifest.manifest_length
    return [group[::-1] for group in reversed(groups)]


def merged_entries(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """Return the live files as another manifest has them: with all their own numbers."""
    return [replace(entry, status=EntryStatus.EXISTING) for entry in entries if entry.is_live]
