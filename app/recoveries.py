"""Errors about what was dropped, is protected, waits to be deleted, or was at a time."""

from __future__ import annotations

from collections.abc import Sequence

from app.errors import AlreadyExists, BadRequest, CommitFailed, IcetowerError, NotAllowed, NotFound


class Protected(NotAllowed):
    """A drop, purge or rename of something that is protected."""

    def __init__(self, what: str, action: str, place: str, how: str) -> None:
        nearer = "" if place in ("it", what) else ", or nearer to what is to go,"
        super().__init__(
            f"Cannot {action} {what}: icetower.protected is on for {place}. "
            f"Set it to false there{nearer} and try again ({how})"
        )


class NoSuchDropped(NotFound):
    """Nothing that was dropped under this name or id can come back."""


class UndropRefused(AlreadyExists):
    """The name of what is to come back is taken, or its files are in use."""

    def __init__(self, message: str, choices: Sequence[str] = ()) -> None:
        listed = f". What can come back under this name: {'; '.join(choices)}" if choices else ""
        super().__init__(f"{message}{listed}")


class OrphansWait(CommitFailed):
    """Orphans of a table are marked already, and wait to be deleted."""

    def __init__(self, identifier: object) -> None:
        super().__init__(
            f"Cannot mark orphans of {identifier}: others are marked and wait to be deleted; "
            "mark again when that is done"
        )


class RestoreRefused(BadRequest):
    """A table cannot become again what it was; the message says why."""


class InvalidMoment(BadRequest):
    """A time at which a warehouse is to be shown, and cannot be."""


class PastIsReadOnly(NotAllowed):
    """A change of a warehouse as it was at a time."""

    def __init__(self, warehouse: str, operation: str) -> None:
        super().__init__(
            f"{warehouse} shows the past and is read-only: {operation.replace('_', ' ')} is not possible there"
        )


class PastIsGone(IcetowerError):
    """Something is known to have been there, and can no longer be read."""
