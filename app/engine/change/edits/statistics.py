"""Edits of a draft's statistics files and encryption keys."""

from __future__ import annotations

from app.engine.change.draft import MetadataDraft
from app.engine.change.updates import (
    AddEncryptionKey,
    RemoveEncryptionKey,
    RemovePartitionStatistics,
    RemoveStatistics,
    SetPartitionStatistics,
    SetStatistics,
)


def set_statistics(draft: MetadataDraft, update: SetStatistics) -> None:
    """Replace the statistics of one snapshot, which need not exist."""
    file = update.statistics
    draft.statistics = [item for item in draft.statistics if item.snapshot_id != file.snapshot_id]
    draft.statistics.append(file)
    draft.has_changes = True


def remove_statistics(draft: MetadataDraft, update: RemoveStatistics) -> None:
    """Remove the statistics of one snapshot."""
    kept = [item for item in draft.statistics if item.snapshot_id != update.snapshot_id]
    draft.has_changes |= len(kept) != len(draft.statistics)
    draft.statistics = kept


def set_partition_statistics(draft: MetadataDraft, update: SetPartitionStatistics) -> None:
    """Replace the partition statistics of one snapshot."""
    file = update.partition_statistics
    draft.partition_statistics = [
        item for item in draft.partition_statistics if item.snapshot_id != file.snapshot_id
    ]
    draft.partition_statistics.append(file)
    draft.has_changes = True


def remove_partition_statistics(draft: MetadataDraft, update: RemovePartitionStatistics) -> None:
    """Remove the partition statistics of one snapshot."""
    kept = [item for item in draft.partition_statistics if item.snapshot_id != update.snapshot_id]
    draft.has_changes |= len(kept) != len(draft.partition_statistics)
    draft.partition_statistics = kept


def add_encryption_key(draft: MetadataDraft, update: AddEncryptionKey) -> None:
    """Add a key; one with this id is never overwritten."""
    if any(key.key_id == update.encryption_key.key_id for key in draft.encryption_keys):
        return
    draft.encryption_keys.append(update.encryption_key)
    draft.has_changes = True


def remove_encryption_key(draft: MetadataDraft, update: RemoveEncryptionKey) -> None:
    """Remove a key."""
    kept = [key for key in draft.encryption_keys if key.key_id != update.key_id]
    draft.has_changes |= len(kept) != len(draft.encryption_keys)
    draft.encryption_keys = kept
