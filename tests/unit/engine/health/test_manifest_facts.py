"""Facts about manifests, and how well they are clustered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.engine.health.manifest_facts import manifest_facts
from app.engine.model.files.manifests import ManifestContent, ManifestFile, PartitionSummary
from app.engine.model.ids import Location, SpecId
from tests.unit.engine.documents import table


def manifest(*bounds: tuple[str, str] | None, size: int = 100, spec: int = 0) -> ManifestFile:
    """Return a data manifest whose only partition field has these bounds."""
    summaries = tuple(
        PartitionSummary(True, None, None, None)
        if pair is None
        else PartitionSummary(False, None, pair[0].encode(), pair[1].encode())
        for pair in bounds
    )
    return ManifestFile(Location("m"), size, SpecId(spec), partitions=summaries)


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([("a", "b"), ("c", "d"), ("e", "f")], 1.0),
        ([("a", "z")] * 5, 5.0),
        ([("a", "c"), ("b", "d"), ("e", "f")], 5 / 3),
        ([("a", "b"), ("b", "c")], 2.0),
        ([("a", "b"), None, ("c", "d")], 1.0),
    ],
)
def test_overlap_is_how_many_manifests_share_values(
    ranges: list[tuple[str, str] | None], expected: float
) -> None:
    facts = manifest_facts(table(), [manifest(pair) for pair in ranges])

    assert facts.average_overlap == pytest.approx(expected)
    assert facts.overlap_by_field == {"category": facts.average_overlap}


def test_overlap_is_not_known_without_bounds() -> None:
    assert manifest_facts(table(), []).average_overlap is None
    assert manifest_facts(table(), [manifest(None), manifest()]).average_overlap is None
    assert manifest_facts(table(), [manifest(("a", "b"), spec=7)]).average_overlap is None


def test_manifests_without_live_files_are_in_no_ones_way() -> None:
    emptied = replace(
        manifest(("a", "z")), added_files_count=0, existing_files_count=0, deleted_files_count=3
    )

    facts = manifest_facts(table(), [manifest(("a", "b")), manifest(("c", "d")), emptied])

    assert (facts.data_manifests, facts.average_overlap) == (3, 1.0)


def test_manifests_are_counted_by_content_size_and_spec() -> None:
    deletes = ManifestFile(Location("d"), 9 << 20, SpecId(0), content=ManifestContent.DELETES)

    facts = manifest_facts(table(), [manifest(("a", "b"), size=(4 << 20) - 1), manifest(spec=7), deletes])

    assert (facts.data_manifests, facts.delete_manifests, facts.small_manifests) == (2, 1, 2)
    assert (facts.total_bytes, facts.old_spec_manifests) == ((4 << 20) - 1 + 100 + (9 << 20), 1)
