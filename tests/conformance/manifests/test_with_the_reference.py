"""What the reference writes we read as it does itself, and the other way round."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from app.engine.model.data_types.types import PrimitiveType
from app.engine.model.files.manifests import ManifestEntry
from app.engine.model.ids import SnapshotId
from app.engine.model.partition_spec import PartitionSpec
from app.formats.manifests.columns import ManifestColumns
from app.formats.manifests.lists import read_manifest_list, write_manifest_list
from app.formats.manifests.writer import write_manifest
from tests.conformance.manifests.in_json import Json, entry_in_json, manifest_in_json, with_values
from tests.conformance.manifests.reference import Reference
from tests.strategies.manifest_entries import manifests, partition_kinds

pytestmark = pytest.mark.spark

COMMIT, PARENT = SnapshotId(2**40 + 1), SnapshotId(2**40)
SEQUENCE_NUMBER = 2**33
FIRST_ROW_ID = 2**34
VERSIONS = pytest.mark.parametrize("format_version", [1, 2, 3])
random_manifests = settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # each try is many calls to the JVM
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def assert_same(
    ours: Iterable[ManifestEntry], theirs: Iterable[Json], spec: PartitionSpec, kinds: Sequence[PrimitiveType]
) -> None:
    """Compare what was read; a difference is told by field."""
    read = [with_values(entry_in_json(entry, spec, kinds), spec, kinds) for entry in ours]
    expected = [with_values(entry, spec, kinds) for entry in theirs]
    assert len(read) == len(expected)
    for mine, their in zip(read, expected, strict=True):
        assert mine["file"] == their["file"]
        assert mine == their


@VERSIONS
@random_manifests
@given(data=st.data())
def test_what_the_reference_writes(reference: Reference, format_version: int, data: st.DataObject) -> None:
    # Its JSON, in which it is told what to write, has no NaN and no infinity.
    schema, spec, content, entries = data.draw(manifests(format_version, only_finite=True))
    # The reference's JSON, which the comparison is in, knows no spec of void fields only.
    assume(not spec.fields or not spec.is_unpartitioned)
    kinds = partition_kinds(schema, spec)
    if format_version == 1:
        entries = [replace(entry, data_sequence_number=0, file_sequence_number=0) for entry in entries]
    manifest = reference.write_manifest(
        entries, schema, spec, kinds, format_version=format_version, content=content, snapshot_id=COMMIT
    )
    location = reference.write_list(
        [manifest],
        format_version=format_version,
        snapshot_id=COMMIT,
        parent_snapshot_id=PARENT,
        sequence_number=SEQUENCE_NUMBER if format_version > 1 else 0,
        first_row_id=FIRST_ROW_ID if format_version > 2 else None,
    )
    (theirs,) = reference.read_list(location)

    (ours,) = read_manifest_list(reference.content(location), location).values

    assert manifest_in_json(ours) == reference.manifest_in_json(theirs)
    read = tuple(ManifestColumns(ours, reference.content(ours.manifest_path)))
    bound = reference.spec(schema, spec)
    assert_same(read, list(reference.entries(theirs, bound)), spec, kinds)


@VERSIONS
@random_manifests
@given(data=st.data())
def test_what_we_write(reference: Reference, format_version: int, data: st.DataObject) -> None:
    schema, spec, content, entries = data.draw(manifests(format_version))
    # The reference's JSON, which the comparison is in, knows no spec of void fields only.
    assume(not spec.fields or not spec.is_unpartitioned)
    kinds = partition_kinds(schema, spec)
    # It takes partition values of this type only as it writes them itself, against Avro's rules.
    assume(all(kind.kind != "fixed" for kind in kinds))
    manifest_location, list_location = reference.new_location(), reference.new_location()
    written = write_manifest(
        entries, schema=schema, spec=spec, format_version=format_version, content=content, snapshot_id=COMMIT
    )
    reference.put(manifest_location, written.content)
    listed = write_manifest_list(
        [written.at(manifest_location)],
        format_version=format_version,
        snapshot_id=COMMIT,
        parent_snapshot_id=PARENT,
        sequence_number=SEQUENCE_NUMBER,
        first_row_id=FIRST_ROW_ID,
    ).content
    reference.put(list_location, listed)

    (theirs,) = reference.read_list(list_location)

    (ours,) = read_manifest_list(listed, list_location).values
    assert reference.manifest_in_json(theirs) == manifest_in_json(ours)
    bound = reference.spec(schema, spec)
    read = tuple(ManifestColumns(ours, written.content))
    assert_same(read, list(reference.entries(theirs, bound)), spec, kinds)
