"""A delete file dangles if and only if scans would apply it to no data file, where nothing but ages is known."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.engine.model.files.entry_filters import entry_facts
from app.engine.model.files.manifests import DataFile, EntryStatus, FileContent, ManifestEntry
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.partition_spec import PartitionSpec
from app.engine.selection.dangling_deletes import LiveAges
from app.engine.selection.deletes import DeleteIndex

PATH_ID = 2147483546
SPECS = (
    PartitionSpec.from_object({"spec-id": 0, "fields": []}),
    PartitionSpec.from_object(
        {
            "spec-id": 1,
            "fields": [{"name": "p", "transform": "identity", "source-id": 1, "field-id": 1000}],
        }
    ),
)
AGES = st.integers(1, 5)
NAMES = st.sampled_from(["a", "b", "c"])
PLACES = st.sampled_from([(SpecId(0), ()), (SpecId(1), (1,)), (SpecId(1), (2,)), (SpecId(1), (None,))])


def entry(file: DataFile, age: int) -> ManifestEntry:
    return ManifestEntry(EntryStatus.EXISTING, SnapshotId(1), age, age, file)


@st.composite
def data_files(draw: st.DrawFn) -> ManifestEntry:
    spec_id, partition = draw(PLACES)
    path = Location(f"{draw(NAMES)}.parquet")
    return entry(DataFile(FileContent.DATA, path, "parquet", spec_id, partition, 1, 1), draw(AGES))


@st.composite
def delete_files(draw: st.DrawFn, number: int = 0) -> ManifestEntry:
    spec_id, partition = draw(PLACES)
    content = draw(st.sampled_from([FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES]))
    path = Location(f"delete-{number}-{draw(st.integers(0, 10**9))}")
    target, bounds = None, None
    equality_ids = (1,) if content is FileContent.EQUALITY_DELETES else None
    if content is FileContent.POSITION_DELETES and draw(st.booleans()):
        named = f"{draw(NAMES)}.parquet"
        if draw(st.booleans()):
            target = Location(named)
        else:
            bounds = {PATH_ID: named.encode()}
    file = DataFile(
        content,
        path,
        "parquet",
        spec_id,
        partition,
        1,
        1,
        lower_bounds=bounds,
        upper_bounds=bounds,
        equality_ids=equality_ids,
        referenced_data_file=target,
    )
    return entry(file, draw(AGES))


@given(
    st.lists(data_files(), max_size=6, unique_by=lambda item: item.file.file_path),
    st.lists(delete_files(), max_size=6, unique_by=lambda item: item.file.file_path),
)
def test_deletes_dangle_exactly_if_scans_apply_them_to_nothing(
    data: list[ManifestEntry], deletes: list[ManifestEntry]
) -> None:
    index, ages = DeleteIndex(deletes, SPECS, ()), LiveAges(deletes, SPECS)
    for item in data:
        for facts in entry_facts([item]):
            ages.note(item.file.spec_id, facts)

    applied = {
        found.file.key
        for item in data
        for found in index.deletes_of(item.file, item.data_sequence_number or 0)
    }

    assert {item.file.key for item in deletes if ages.may_apply(item)} == applied
