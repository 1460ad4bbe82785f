"""A manifest list that is read beside another one is what it is without it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st

from app.engine.model.files.manifests import ManifestContent, ManifestFile, PartitionSummary
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.formats.manifests.lists import WrittenList, read_manifest_list, write_manifest_list

PLACE = Location("memory://list.avro")
COUNTS = st.none() | st.integers(0, 300)
BOUNDS = st.none() | st.binary(max_size=3)
SUMMARIES = st.builds(PartitionSummary, st.booleans(), st.none() | st.booleans(), BOUNDS, BOUNDS)
MANIFESTS = st.builds(
    ManifestFile,
    # Paths that begin alike, and paths that are prefixes of others.
    manifest_path=st.text("ab", max_size=3).map(lambda name: Location("m" * 70 + name)),
    manifest_length=st.integers(0, 1 << 40),
    partition_spec_id=st.integers(0, 2).map(SpecId),
    content=st.just(ManifestContent.DATA),
    sequence_number=st.integers(0, 200),
    min_sequence_number=st.integers(0, 200),
    added_snapshot_id=st.integers(0, 3).map(SnapshotId),
    added_files_count=st.integers(0, 300),
    existing_files_count=st.integers(0, 300),
    deleted_files_count=st.integers(0, 300),
    added_rows_count=st.integers(0, 300),
    existing_rows_count=st.integers(0, 300),
    deleted_rows_count=st.integers(0, 300),
    partitions=st.none() | st.lists(SUMMARIES, max_size=2).map(tuple),
    key_metadata=st.none() | st.binary(min_size=1, max_size=2),
    first_row_id=COUNTS,
)


def packed(manifests: list[ManifestFile], format_version: int) -> WrittenList:
    return write_manifest_list(
        manifests,
        format_version=format_version,
        snapshot_id=SnapshotId(1),
        parent_snapshot_id=None,
        sequence_number=300,
        first_row_id=0,
    )


@st.composite
def later_lists(draw: st.DrawFn, before: list[ManifestFile]) -> list[ManifestFile]:
    """Return a list that has lines of another one, some of them changed, and lines of its own."""
    if not before:
        return draw(st.lists(MANIFESTS, max_size=3))
    kept = draw(st.lists(st.sampled_from(before), max_size=6))
    changed = [
        replace(manifest, sequence_number=draw(st.integers(0, 200))) if draw(st.booleans()) else manifest
        for manifest in kept
    ]
    others = draw(st.lists(MANIFESTS, max_size=3))
    if draw(st.booleans()):
        return others + before[draw(st.integers(0, len(before))) :]
    return draw(st.permutations([*changed, *others]))


@given(st.data())
def test_lists_are_read_beside_another_one_as_without_it(data: st.DataObject) -> None:
    versions = st.sampled_from([1, 2, 2, 3])
    before = data.draw(st.lists(MANIFESTS, max_size=6))
    now = data.draw(later_lists(before))
    version = data.draw(versions)
    content = packed(now, version).content
    known = read_manifest_list(packed(before, data.draw(versions | st.just(version))).content, PLACE)

    lines = read_manifest_list(content, PLACE, known=known)

    assert lines.values == read_manifest_list(content, PLACE).values
    of_known = {id(manifest) for manifest in known.values}
    event(f"some are not read again: {any(id(manifest) in of_known for manifest in lines.values)}")
    # What comes behind it finds the lines of this one in it.
    again = read_manifest_list(content, PLACE, known=lines)
    assert again.values == lines.values


@given(st.data())
def test_lists_are_read_beside_one_that_was_just_written_as_without_it(data: st.DataObject) -> None:
    # Version 3 has all that a manifest says; what others leave out, no manifest of theirs says.
    before = data.draw(st.lists(MANIFESTS, max_size=12))
    content = packed(data.draw(later_lists(before)), 3).content

    lines = read_manifest_list(content, PLACE, known=packed(before, 3).lines)

    assert lines.values == read_manifest_list(content, PLACE).values
    # What comes behind it finds the lines of this one in it.
    later = packed(data.draw(later_lists(before)), 3).content
    assert read_manifest_list(later, PLACE, known=lines).values == read_manifest_list(later, PLACE).values
