"""What can go wrong with a call: refused, not understood, not reachable, or answer lost.

CallFailed
├── CatalogRefused          the server answered, with an error
├── AnswerNotUnderstood     something answered that is not an Iceberg REST catalog, or a broken one
├── CatalogUnreachable      nothing was done: there was no connection
├── NothingSent             nothing was done: what was to be sent is no text, or too long for an address
├── LoginFailed             nothing was done: the token endpoint gives no token
├── ScanNotPlanned          the server began to plan a scan and did not finish
└── AnswerLost              the request was sent and no whole answer came back
"""

from __future__ import annotations

from typing import Any


class CallFailed(Exception):
    """Parent of every failure of a call; `str(failure)` is one sentence for people."""


class CatalogRefused(CallFailed):
    """The server answered with an error.

    Attributes:
        status: the HTTP status.
        type: the error's type in the protocol's words, `NoSuchTableException` for instance.
        message: the server's own sentence.
        conflict: the conflict of a commit, for programs; None if the server sent none.
    """

    def __init__(
        self,
        status: int,
        type: str,  # noqa: A002 - the protocol's word
        message: str,
        conflict: dict[str, Any] | None = None,
    ) -> None:
        self.status = status
        self.type = type
        self.message = message
        self.conflict = conflict
        super().__init__(status, type, message)

    @property
    def is_missing_file(self) -> bool:
        """Whether the name is there, and its metadata file is not found.

        Any other 404 says that the name is not there.
        """
        return self.status == 404 and self.type == "NotFoundException"

    @property
    def is_missing_namespace(self) -> bool:
        """Whether there is no such namespace, or no longer."""
        return self.status == 404 and self.type == "NoSuchNamespaceException"

    def __str__(self) -> str:
        return f"{self.message} ({self.type}, HTTP status {self.status})"


class AnswerNotUnderstood(CallFailed):
    """The answer does not come from an Iceberg REST catalog, or is broken.

    With a key, what was asked for may have been done.
    """

    def __init__(
        self, url: str, status: int, reason: str, key: str | None = None, place: str | None = ""
    ) -> None:
        self.status = status
        outcome = "" if key is None else f"; {_unknown_outcome(key, place)}"
        super().__init__(
            f"The answer of {url} (HTTP status {status}) is not one of an Iceberg REST catalog: {reason}{outcome}"
        )


class CatalogUnreachable(CallFailed):
    """There was no connection to the server; nothing was done.

    Attributes:
        uri: the server's address, without user and password.
    """

    def __init__(self, uri: str, reason: str) -> None:
        self.uri = uri
        super().__init__(f"Cannot reach a catalog at {uri}: {reason}")


class NothingSent(CallFailed):
    """What was to be sent is no text, or too long for an address; nothing was done."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"Nothing was sent to {url[:500]}: {reason}")


class LoginFailed(CallFailed):
    """A token endpoint gives no token; nothing was done."""

    def __init__(self, uri: str, reason: str) -> None:
        super().__init__(f"Cannot log in at {uri}: {reason}")


class ScanNotPlanned(CallFailed):
    """The server began to plan a scan and failed, or took too long."""


class AnswerLost(CallFailed):
    """The request was sent, but no whole answer came back.

    Attributes:
        key: the Idempotency-Key that it was sent with; by it the server says what became of it.
    """

    def __init__(
        self, method: str, url: str, reason: str, key: str | None = None, place: str | None = ""
    ) -> None:
        self.key = key
        outcome = "" if method in {"GET", "HEAD"} else f"; {_unknown_outcome(key, place)}"
        super().__init__(f"No answer to {method} {url}: {reason}{outcome}")


def _unknown_outcome(key: str | None, place: str | None) -> str:
    """Return a sentence; `place` has options that lead to the receipt, and is None without."""
    is_kept = key is not None and place is not None
    question = f". Icetower knows: icetower commit find --key {key}{place}" if is_kept else ""
    return f"whether the change was made is not known{question}"
