"""Headers of manifests: content and partition spec, from the metadata of their file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.engine.model.files.manifests import EntryStatus, ManifestContent, ManifestFile, Partition
from app.engine.model.ids import Location, SpecId
from app.engine.model.partition_spec import number_fields
from app.errors import InvalidMetadata
from app.formats.avro import open_avro
from app.formats.bounds import MAX_FILE_BYTES

_LONGEST_SPEC: Final = 1 << 20
"""Characters of its JSON: to parse hundreds of megabytes takes seconds, in which nothing else is done."""
_OF_PARTS: Final = (list, dict)
_CONTENTS: Final = {"data": ManifestContent.DATA, "deletes": ManifestContent.DELETES}


@dataclass(frozen=True, slots=True)
class ManifestHeader:
    """What a manifest says about itself; None where its writer left it out.

    Spec: #manifests
    """

    content: ManifestContent | None
    spec_id: SpecId | None
    partition_field_ids: tuple[int, ...] | None
    """In the order of the spec's fields, whatever their order in the file."""


def read_header(metadata: Mapping[str, str]) -> ManifestHeader:
    """Return the header in a file's metadata.

    Raises:
        ValueError: it makes no sense.
    """
    content = metadata.get("content")
    if content is not None and content not in _CONTENTS:
        raise ValueError(f"its content is {content[:50]!r}")
    spec_id = metadata.get("partition-spec-id")
    if spec_id is not None and not spec_id.isdecimal():
        raise ValueError(f"its partition spec has the id {spec_id[:50]!r}")
    return ManifestHeader(
        content=None if content is None else _CONTENTS[content],
        spec_id=None if spec_id is None else SpecId(int(spec_id)),
        partition_field_ids=_partition_field_ids(metadata.get("partition-spec")),
    )


def _partition_field_ids(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    if len(text) > _LONGEST_SPEC:
        raise ValueError("its partition spec is too long")
    try:
        spec: Any = json.loads(text)
    except RecursionError as error:
        raise ValueError("its partition spec is nested too deeply") from error
    if isinstance(spec, dict):
        spec = spec.get("fields")
    if not isinstance(spec, list) or not all(isinstance(field, dict) for field in spec):
        raise ValueError("its partition spec makes no sense")
    ids = [field.get("field-id") for field in number_fields(spec)]
    if not all(isinstance(field_id, int) for field_id in ids):
        raise ValueError("its partition spec has a field without an id")
    return tuple(ids)


def check_header(manifest: ManifestFile, header: ManifestHeader) -> None:
    """Check that a manifest's header agrees with its manifest list.

    Raises:
        ValueError: it does not.
    """
    if header.content is not None and header.content is not manifest.content:
        raise ValueError(
            f"it holds {header.content.name.lower()}, its manifest list says {manifest.content.name.lower()}"
        )
    if header.spec_id is not None and header.spec_id != manifest.partition_spec_id:
        raise ValueError(
            f"it has partition spec {header.spec_id}, its manifest list says {manifest.partition_spec_id}"
        )


def check_counts(manifest: ManifestFile, statuses: Sequence[int]) -> None:
    """Check that a manifest has no fewer files than its manifest list says.

    A file that is cut off between two blocks is only noticed by its missing entries.

    Raises:
        ValueError: it has fewer.
    """
    for status, listed in (
        (EntryStatus.ADDED, manifest.added_files_count),
        (EntryStatus.EXISTING, manifest.existing_files_count),
    ):
        found = statuses.count(status)
        if listed is not None and found < listed:
            raise ValueError(f"it has {found} {status.name.lower()} files, its manifest list says {listed}")


def partition_tuple(values: Mapping[int | str, Any], field_ids: tuple[int, ...] | None) -> Partition:
    """Return the values of a partition in the order of the spec's fields."""
    if field_ids is None or any(isinstance(key, str) for key in values):
        found = tuple(values.values())
    else:
        found = tuple(values.get(field_id) for field_id in field_ids)
    for value in found:
        if type(value) in _OF_PARTS:
            return tuple(map(_as_key, found))
    return found


def _as_key(value: Any) -> Any:
    """Return a value that can be a key, as partitions are.

    No transform makes lists or maps, but a file may have them.
    """
    match value:
        case list():
            return tuple(map(_as_key, value))
        case dict():
            return tuple((name, _as_key(item)) for name, item in value.items())
    return value


def unlisted_manifest(
    content: bytes, location: Location, max_unpacked_bytes: int = MAX_FILE_BYTES
) -> ManifestFile:
    """Return the manifest list's entry for a manifest of which only the location is known.

    Raises:
        InvalidMetadata: the bytes are not a manifest; names the file.
    """
    try:
        header = read_header(open_avro(content, max_unpacked_bytes).metadata)
    except ValueError as error:
        raise InvalidMetadata(f"Cannot read manifest {location}: {error}") from error
    return ManifestFile(
        manifest_path=location,
        manifest_length=len(content),
        partition_spec_id=header.spec_id or SpecId(0),
        content=header.content or ManifestContent.DATA,
    )
