"""Errors of the operating system and pyarrow, as errors of ours."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable

from app.errors import (
    AccessRefused,
    FileMissing,
    FilesUnavailable,
    IcetowerError,
    InvalidLocation,
    InvalidSetting,
    StoreNotOpened,
    Throttled,
)

_NOT_A_LOCATION = frozenset({errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP})
_NO_ACCESS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NO_FILE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR})

# pyarrow has one exception for most answers of a store, so its text decides. 503 is S3's "slow down".
_SLOW_DOWN = re.compile(
    r"slow_?down|throttl|too_?many_?requests|(?:request|rate)_?limit|server_?busy|service_?unavailable"
    r"|HTTP status (?:429|503)|\b(?:429|503) ",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"access_?denied|invalid_?access_?key|signature_?does_?not_?match|expired_?token|invalid_?token|invalid_?client"
    r"|unrecognized_?client|authenticat|authoriz|permission_?denied|HTTP status 40[13]|\b40[13] ",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(r"HTTP status 30[17]|PermanentRedirect|AuthorizationHeaderMalformed", re.IGNORECASE)
_GONE = re.compile(r"no_?such_?key", re.IGNORECASE)
_QUERY = re.compile(r"((?:https?://|with url: /)[^\s?'\"]*)\?[^\s'\"]*")
_LONGEST = 400


def local_failure(verb: str, location: str, error: OSError | ValueError) -> IcetowerError:
    """Return the error to raise when the operating system refuses an action."""
    if isinstance(error, ValueError):  # a NUL, or a surrogate that is no byte: no path at all
        return InvalidLocation(f"Not a local file: {location!r}: {error}")
    if error.errno in _NO_FILE and verb == "read":
        return FileMissing(location)
    reason = os.strerror(error.errno) if error.errno else str(error)
    if error.errno in _NOT_A_LOCATION:
        return InvalidLocation(f"Cannot {verb} {location}: {reason}")
    kind = AccessRefused if error.errno in _NO_ACCESS else FilesUnavailable
    return kind(f"Cannot {verb} {location}: {reason}")


def object_store_failure(
    verb: str, location: str, error: Exception, secrets: Iterable[str] = ()
) -> IcetowerError:
    """Return the error to raise when pyarrow fails."""
    reason = _reason(error, secrets)
    # What pyarrow says of a path before it asks the store, or of half of a surrogate pair. Google's answers look alike.
    if isinstance(error, ValueError) and not reason.startswith("google::cloud::Status("):
        return InvalidLocation(f"Cannot {verb} {location!r}: {reason}")
    clue = reason.replace(location.partition("://")[2].partition("/")[2], "")  # a path may contain any word
    if verb == "read" and _GONE.search(clue):  # it was there when its size was asked for
        return FileMissing(location)
    if _SLOW_DOWN.search(clue):
        return Throttled(f"Cannot {verb} {location}: the store asks to slow down: {reason}")
    if _ELSEWHERE.search(clue):
        return FilesUnavailable(f"Cannot {verb} {location}: the bucket is in another region: {reason}")
    if isinstance(error, PermissionError) or _REFUSED.search(clue):
        return AccessRefused(
            f"Cannot {verb} {location}: the store refuses access with these credentials: {reason}"
        )
    return FilesUnavailable(f"Cannot {verb} {location}: {reason}")


def not_opened(error: InvalidSetting, what: str = "the store") -> StoreNotOpened:
    """Return the error for a caller of files, who mostly has not made their storage settings."""
    reason = str(error).removesuffix(".")
    if not reason.startswith("Cannot open"):
        reason = f"Cannot open {what}: {reason}"
    return StoreNotOpened(
        f"{reason}. Who has given the storage settings has to mend that: for a warehouse, the operator of the server"
    )


def opening_failure(scheme: str, secrets: Iterable[str], error: Exception) -> IcetowerError:
    """Return the error to raise when a store cannot be opened with these settings."""
    message = f"Cannot open the store of {scheme} locations: {_reason(error, secrets)}"
    return FilesUnavailable(message) if isinstance(error, OSError) else InvalidSetting(message)


def _reason(error: Exception, secrets: Iterable[str]) -> str:
    """Return what the library says, without path, secrets and noise."""
    text = " ".join(hidden(error, secrets).split())
    _, aws, after = text.partition("AWS Error ")
    text = after if aws else text
    text = text.partition(" error_info=")[0]  # the machine-readable half of what Google's client says
    text = re.sub(r"curlCode: \d+, .*Details: ", "", text)
    text = text.removesuffix(": No response body.")
    text = re.sub(r"(?<=: )Unable to parse ExceptionName: (\w+) Message:", r"\1:", text)
    text = _QUERY.sub(r"\1", text)
    return text[:_LONGEST] or type(error).__name__


def hidden(error: Exception, secrets: Iterable[str]) -> str:
    """Return an error's text without secrets; they leave the error, too, which the log shows."""
    shown = without_secrets(str(error), secrets)
    if shown != str(error):
        error.args = (shown,)
        if isinstance(error, OSError):
            error.strerror = shown
    return shown


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Return a text in which no secret is shown."""
    # The longest first: one may be a part of another.
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
