"""Why a commit that lost a race is not rebased: a few reasons, each with a sentence."""

from __future__ import annotations

from enum import StrEnum

from app.standings import RebaseRefusal


class Reason(StrEnum):
    """The kinds of reasons, which are counted."""

    COMMIT = "commit"
    """It does more than add one snapshot to one branch, or the branch is not what it was."""
    MODE = "mode"
    """Its operation is not one that the mode allows."""
    FORMAT = "format"
    """The format version, or an encrypted file."""
    PUBLISHED = "published"
    """It publishes or repeats another snapshot: its client checks that this happens once."""
    EXACTLY_ONCE = "exactly-once"
    """Its writer counts on being refused, to write everything exactly once."""
    SCHEMA = "schema"
    """The schema or the partition spec is not the table's current one."""
    HISTORY = "history"
    """Its parent has expired, or the branch does not descend from it."""
    MANIFESTS = "manifests"
    """Its manifests are not those of an append, or do not add up."""
    CONFLICT = "conflict"
    """It may conflict with what came first."""
    UNREADABLE = "unreadable"
    """A manifest list or manifest cannot be read."""


def refusal(reason: Reason, message: str) -> RebaseRefusal:
    """Return a refusal; the message is one short sentence."""
    return RebaseRefusal(reason.value, message)
