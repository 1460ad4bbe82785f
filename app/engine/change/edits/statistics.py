"""Edits of a draft's statistics files and encryption keys."""

from __future__ import annotations

from app.engine.change import updates as u
from app.engine.change.draft import MetadataDraft


def set_statistics(draft: MetadataDraft, update: u.SetStatistics) -> None:
    """Replace the statistics of one snapshot, which need not exist."""
    file = update.statistics
    draft.statistics.pop(file.snapshot_id, None)
    draft.statistics[file.snapshot_id] = [file]
    draft.has_changes = True


def remove_statistics(draft: MetadataDraft, update: u.RemoveStatistics) -> None:
    """Remove the statistics of one snapshot."""
    draft.has_changes |= draft.statistics.pop(update.snapshot_id, None) is not None


def set_partition_statistics(draft: MetadataDraft, update: u.SetPartitionStatistics) -> None:
    """Replace the partition statistics of one snapshot."""
    file = update.partition_statistics
    draft.partition_statistics.pop(file.snapshot_id, None)
    draft.partition_statistics[file.snapshot_id] = [file]
    draft.has_changes = True


def remove_partition_statistics(draft: MetadataDraft, update: u.RemovePartitionStatistics) -> None:
    """Remove the partition statistics of one snapshot."""
    draft.has_changes |= draft.partition_statistics.pop(update.snapshot_id, None) is not None


def add_encryption_key(draft: MetadataDraft, update: u.AddEncryptionKey) -> None:
    """Add a key; one with this id is never overwritten."""
    if update.encryption_key.key_id in draft.encryption_keys:
        return
    draft.encryption_keys[update.encryption_key.key_id] = update.encryption_key
    draft.has_changes = True


def remove_encryption_key(draft: MetadataDraft, update: u.RemoveEncryptionKey) -> None:
    """Remove a key."""
    draft.has_changes |= draft.encryption_keys.pop(update.key_id, None) is not None
