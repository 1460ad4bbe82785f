"""What the operating system and pyarrow report, as errors of ours."""

from __future__ import annotations

import errno
import os

from app.errors import FileMissing, FilesUnavailable, IcetowerError, InvalidLocation

_NOT_A_LOCATION = frozenset({errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP})
_NO_FILE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR})


def local_failure(verb: str, location: str, error: OSError | ValueError) -> IcetowerError:
    """Return the error to raise when the operating system refused to read, write, delete or list."""
    if isinstance(error, ValueError):  # a NUL, or a surrogate that is no byte: no path at all
        return InvalidLocation(f"Not a local file: {location!r}: {error}")
    if error.errno in _NO_FILE and verb == "read":
        return FileMissing(location)
    reason = os.strerror(error.errno) if error.errno else str(error)
    if error.errno in _NOT_A_LOCATION:
        return InvalidLocation(f"Cannot {verb} {location}: {reason}")
    return FilesUnavailable(f"Cannot {verb} {location}: {reason}")
