from __future__ import annotations

from itertools import pairwise

import pytest

from app.engine.model.format_versions import (
    DEFAULT_FORMAT_VERSION,
    FORMAT_VERSIONS,
    MAX_FORMAT_VERSION,
    MIN_FORMAT_VERSION,
)
from app.engine.model.table_metadata import TableMetadata


def test_versions_are_numbered_without_gaps_and_the_default_is_one() -> None:
    assert [*FORMAT_VERSIONS] == [*range(MIN_FORMAT_VERSION, MAX_FORMAT_VERSION + 1)]
    assert all(number == version.number for number, version in FORMAT_VERSIONS.items())
    assert DEFAULT_FORMAT_VERSION in FORMAT_VERSIONS


def test_required_fields_are_fields_of_the_metadata() -> None:
    for version in FORMAT_VERSIONS.values():
        assert TableMetadata.model_fields.keys() >= set(version.required_fields)


@pytest.mark.parametrize(
    "capability",
    [
        "tracks_partition_field_ids",
        "requires_manifest_lists",
        "requires_manifest_counts",
        "has_sequence_numbers",
        "inherits_snapshot_ids",
        "has_delete_files",
        "has_deletion_vectors",
        "has_row_lineage",
        "has_default_values",
        "has_encryption_keys",
    ],
)
def test_later_versions_have_what_earlier_ones_have(capability: str) -> None:
    claims = [getattr(version, capability) for version in FORMAT_VERSIONS.values()]

    assert claims == sorted(claims)


def test_later_versions_require_what_earlier_ones_require() -> None:
    versions = list(FORMAT_VERSIONS.values())
    for earlier, later in pairwise(versions):
        assert set(earlier.required_fields) <= set(later.required_fields)
