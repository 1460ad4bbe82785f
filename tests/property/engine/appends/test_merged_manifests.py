"""Merged manifests have the entries of those they replace, with all their numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.appends.merging import MergeRules, merge_groups, merged_entries
from app.engine.model.document import MAX_LONG
from app.engine.model.files.manifests import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.formats.manifests.columns import ManifestColumns
from app.formats.manifests.lists import assign_numbers
from app.formats.manifests.writer import WrittenManifest, write_manifest
from tests.strategies.manifest_entries import entries, tables


@pytest.mark.parametrize("version", [1, 2, 3])
@given(data=st.data())
def test_reading_a_merged_manifest_gives_the_live_entries_of_all(version: int, data: st.DataObject) -> None:
    schema, spec = data.draw(tables(version))
    one = entries(schema, spec, ManifestContent.DATA, version)
    groups = data.draw(st.lists(st.lists(one, min_size=1, max_size=4), min_size=2, max_size=3))
    first_row_id = 1_000 if version == 3 else None
    live: list[ManifestEntry] = []
    for group in groups:
        written = write_manifest(
            group, schema=schema, spec=spec, format_version=version, snapshot_id=SnapshotId(98)
        )
        listed, first_row_id = numbered(written, version, 17, first_row_id)
        live += [entry for entry in ManifestColumns(listed, written.content) if entry.is_live]

    merged = write_manifest(
        merged_entries(live), schema=schema, spec=spec, format_version=version, snapshot_id=SnapshotId(99)
    )
    listed, _ = numbered(merged, version, 2**63 - 1, first_row_id)

    found = list(ManifestColumns(listed, merged.content))
    assert list(map(repr, found)) == [repr(replace(entry, status=EntryStatus.EXISTING)) for entry in live]
    assert listed.existing_files_count == len(live)
    assert listed.added_files_count == listed.deleted_files_count == 0


def numbered(
    written: WrittenManifest, version: int, sequence_number: int, first_row_id: int | None
) -> tuple[ManifestFile, int | None]:
    """Return a manifest as a list names it, and the next free row id."""
    (listed,), next_row_id = assign_numbers(
        [written.at(Location("m.avro"))],
        sequence_number=sequence_number if version > 1 else 0,
        first_row_id=first_row_id,
    )
    return listed, next_row_id


LISTED = st.lists(
    st.tuples(st.integers(0, 2), st.integers(1, 100), st.integers(1, 5) | st.integers(1, 60_000)),
    min_size=1,
    max_size=30,
)


def listed_manifests(facts: list[tuple[int, int, int]]) -> list[ManifestFile]:
    return [
        ManifestFile(
            Location(f"{number}.avro"),
            length,
            SpecId(spec_id),
            added_files_count=files,
            existing_files_count=0,
        )
        for number, (spec_id, length, files) in enumerate(facts)
    ]


@given(LISTED, st.integers(1, 8), st.integers(1, 300))
def test_groups_have_every_manifest_once_and_obey_the_rules(
    facts: list[tuple[int, int, int]], min_count: int, target_bytes: int
) -> None:
    manifests = listed_manifests(facts)

    groups = merge_groups(manifests, MergeRules(True, min_count, target_bytes))

    assert sorted(item.manifest_path for group in groups for item in group) == sorted(
        item.manifest_path for item in manifests
    )
    merged = [group for group in groups if len(group) > 1]
    for group in merged:
        assert len({item.partition_spec_id for item in group}) == 1
        assert sum(item.manifest_length for item in group) <= target_bytes
        assert manifests[0] not in group or len(group) >= min_count
    assert sum(item.added_files_count or 0 for group in merged for item in group) <= 50_000


@pytest.mark.parametrize("files", [1, 40])
def test_many_small_appends_leave_few_manifests_and_write_files_a_few_times(files: int) -> None:
    rules = MergeRules(True, 100, 8 << 20)
    manifests: list[ManifestFile] = []
    written = 0
    for number in range(5_000):
        new = ManifestFile(
            Location(f"{number}.avro"), 5_000, SpecId(0), added_files_count=files, existing_files_count=0
        )
        after = []
        for group in merge_groups([new, *manifests], rules):
            count = sum(item.live_files or 0 for item in group)
            if len(group) > 1:
                written += count
            size = group[0].manifest_length if len(group) == 1 else 4_000 + 60 * count
            path = group[0].manifest_path if len(group) == 1 else Location(f"merged-{number}-{count}.avro")
            after.append(ManifestFile(path, size, SpecId(0), added_files_count=0, existing_files_count=count))
        manifests = after
        assert len(manifests) <= 110
    assert sum(item.live_files or 0 for item in manifests) == 5_000 * files
    assert written <= 12 * 5_000 * files


def test_manifests_of_more_rows_than_can_be_counted_are_not_merged() -> None:
    """Writers may claim any number, and a table must not end with the merge that they make impossible."""
    manifests = [replace(item, added_rows_count=MAX_LONG) for item in listed_manifests([(0, 1, 1)] * 3)]
    manifests += [replace(item, added_rows_count=1) for item in listed_manifests([(0, 1, 1)] * 2)]

    groups = merge_groups(manifests, MergeRules(True, 2, 1_000))

    assert sorted(map(len, groups)) == [1, 1, 1, 2]


@given(LISTED)
def test_nothing_is_merged_where_that_is_turned_off(facts: list[tuple[int, int, int]]) -> None:
    manifests = listed_manifests(facts)

    assert merge_groups(manifests, MergeRules(False, 2, 1_000)) == [[manifest] for manifest in manifests]
