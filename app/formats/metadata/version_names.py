"""Names of the metadata files of file-system tables: `v<N>.metadata.json` and the hint.

See the format's section "File System Tables", and `HadoopTableOperations` of Iceberg in Java for names of gzip files.
"""

from __future__ import annotations

import re
from typing import Final

HINT: Final = "version-hint.text"
LARGEST_VERSION: Final = 2**31 - 1
"""Java keeps it as an int."""
_NAME = re.compile(
    r"v([1-9][0-9]{0,9})(?:\.metadata\.json|\.gz\.metadata\.json|\.metadata\.json\.gz)", re.ASCII
)
_NUMBER = re.compile(rb"[0-9]{1,10}", re.ASCII)


def version_names(number: int) -> tuple[str, str, str]:
    """Return the names that a version may have, in the order in which readers ask for them."""
    return f"v{number}.metadata.json", f"v{number}.gz.metadata.json", f"v{number}.metadata.json.gz"


def version_name(number: int, *, is_gzipped: bool) -> str:
    """Return the name under which a version is written."""
    return version_names(number)[int(is_gzipped)]


def version_in(location: str) -> int | None:
    """Return the version in a metadata file's name; None if it is another name."""
    found = _NAME.fullmatch(location.rpartition("/")[2])
    return _in_range(int(found[1])) if found else None


def version_in_hint(content: bytes) -> int | None:
    """Return the version that a hint names, in its first line; None if it names none."""
    first = content.partition(b"\n")[0].removesuffix(b"\r")
    return _in_range(int(first)) if _NUMBER.fullmatch(first) else None


def _in_range(number: int) -> int | None:
    return number if 1 <= number <= LARGEST_VERSION else None
