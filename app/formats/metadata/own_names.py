"""Names of files that only the servers of one database give."""

from __future__ import annotations

import re

_OWN = re.compile(
    r"(\d{5,9})-[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-([0-9a-f]{8})[0-9a-f]{4}(?:\.gz)?\.metadata\.json",
    re.ASCII,
)
_OWN_CONTENT = re.compile(
    r"(?:snap-\d{1,20}-1-|partition-stats-\d{1,20}-|)[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-([0-9a-f]{8})"
    r"[0-9a-f]{4}(?:-m0\.avro|\.avro|\.parquet)",
    re.ASCII,
)
"""Manifests, manifest lists and partition statistics."""
_LENGTH = 36


def marked(file_uuid: str, mark: bytes) -> str:
    """Return a random uuid as one of version 8 that carries four bytes as a mark.

    Other writers use version 4.
    """
    if len(file_uuid) != _LENGTH:
        return file_uuid
    return f"{file_uuid[:14]}8{file_uuid[15:24]}{mark[:4].hex()}{file_uuid[32:]}"


def own_version(location: str, mark: bytes) -> int | None:
    """Return the version in a metadata file's name that has this mark, else None."""
    found = _OWN.fullmatch(location.rpartition("/")[2])
    return int(found[1]) if found is not None and found[2] == mark[:4].hex() else None


def mark_in(location: str) -> str | None:
    """Return the mark in a metadata file's name, as hexadecimal digits; None if it has none."""
    found = _OWN.fullmatch(location.rpartition("/")[2])
    return None if found is None else found[2]


def is_own_content(location: str, mark: bytes) -> bool:
    """Say whether the name of a manifest, list or statistics file has this mark."""
    found = _OWN_CONTENT.fullmatch(location.rpartition("/")[2])
    return found is not None and found[1] == mark[:4].hex()


def has_mark(file_uuid: str, mark: bytes) -> bool:
    """Say whether a uuid is one that `marked` has returned for this mark."""
    return len(file_uuid) == _LENGTH and marked(file_uuid, mark) == file_uuid
