"""Merging manifests, much as the reference does: which ones, and what becomes of entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.engine.model.document import MAX_LONG
from app.engine.model.files.manifests import EntryStatus, ManifestEntry, ManifestFile
from app.engine.model.ids import SpecId
from app.engine.properties.known import Origin
from app.engine.properties.lookup import text_in_force

_ENABLED: Final = "commit.manifest-merge.enabled"
_MIN_COUNT: Final = "commit.manifest.min-count-to-merge"
_TARGET_BYTES: Final = "commit.manifest.target-size-bytes"
_MOST_FILES: Final = 50_000
"""How many files one commit writes again: that takes seconds, and others wait."""
_RATIO: Final = 4
"""A manifest with more times as many files as all smaller ones together is not written again for them."""
_ALWAYS_SMALL: Final = 1_000
_BYTES_A_FILE: Final = 200
"""For manifests whose files a v1 writer did not count."""


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
        layers = {Origin.TABLE: properties}
        return cls(
            (text_in_force(layers, _ENABLED) or "").strip().lower() != "false",
            int(text_in_force(layers, _MIN_COUNT) or 0),
            int(text_in_force(layers, _TARGET_BYTES) or 0),
        )


def merge_groups(manifests: Sequence[ManifestFile], rules: MergeRules) -> list[list[ManifestFile]]:
    """Return the manifests in groups, each of which becomes one manifest.

    The first manifest is the newest. As in the reference, groups are filled from the oldest manifests on, so that the
    one that is not full is the newest one, which waits until it has `min_count` manifests. Unlike there, large ones
    are not written again for a few new files, and one commit writes a limited number of files.
    """
    if not rules.is_enabled or not manifests:
        return [[manifest] for manifest in manifests]
    first, left = manifests[0], _MOST_FILES
    by_spec: dict[SpecId, list[ManifestFile]] = {}
    for manifest in manifests:
        by_spec.setdefault(manifest.partition_spec_id, []).append(manifest)
    groups: list[list[ManifestFile]] = []
    for spec_id in sorted(by_spec, reverse=True):
        for packed in _packed_from_end(by_spec[spec_id], rules.target_bytes):
            least = max(2, rules.min_count) if packed[0] is first else 2
            small = _small_ones(packed, left) if len(packed) >= least else []
            if len(small) < least:
                groups += [[manifest] for manifest in packed]
                continue
            left -= sum(map(_files_in, small))
            chosen = {manifest.manifest_path for manifest in small}
            groups.append([manifest for manifest in packed if manifest.manifest_path in chosen])
            groups += [[manifest] for manifest in packed if manifest.manifest_path not in chosen]
    return groups


def _small_ones(manifests: Sequence[ManifestFile], most_files: int) -> list[ManifestFile]:
    """Return the manifests that are worth being written again, the smallest first."""
    found: list[ManifestFile] = []
    files = 0
    for manifest in sorted(manifests, key=_files_in):
        more = _files_in(manifest)
        if files + more > most_files or more > max(_ALWAYS_SMALL, _RATIO * files):
            break
        found.append(manifest)
        files += more
    return found


def _files_in(manifest: ManifestFile) -> int:
    count = manifest.live_files
    return max(1, manifest.manifest_length // _BYTES_A_FILE) if count is None else count


def _rows_in(manifest: ManifestFile) -> int:
    return (manifest.added_rows_count or 0) + (manifest.existing_rows_count or 0)


def _packed_from_end(manifests: Sequence[ManifestFile], target_bytes: int) -> list[list[ManifestFile]]:
    groups: list[list[ManifestFile]] = []
    size_bytes = rows = 0
    for manifest in reversed(manifests):
        size_bytes += manifest.manifest_length
        rows += _rows_in(manifest)
        # What writers claim can be more than the line of one manifest can count.
        if groups and size_bytes <= target_bytes and rows <= MAX_LONG:
            groups[-1].append(manifest)
        else:
            groups.append([manifest])
            size_bytes, rows = manifest.manifest_length, _rows_in(manifest)
    return [group[::-1] for group in reversed(groups)]


def merged_entries(entries: Iterable[ManifestEntry]) -> Iterator[ManifestEntry]:
    """Yield the live files as another manifest has them: with all their own numbers."""
    for entry in entries:
        if entry.is_live:
            yield ManifestEntry(
                EntryStatus.EXISTING,
                entry.snapshot_id,
                entry.data_sequence_number,
                entry.file_sequence_number,
                entry.file,
            )
