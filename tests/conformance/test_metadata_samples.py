"""Sample metadata files, one for each form that the table spec and the view spec describe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table.metadata import TableMetadataUtil

from app.engine.change.apply import apply_updates
from app.engine.change.updates import SetProperties
from app.engine.model.ids import Location
from app.engine.model.table_metadata import TableMetadata, read_table_metadata
from app.engine.model.view_metadata import read_view_metadata
from app.errors import InvalidMetadata

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
WRITTEN_BY_TODAYS_WRITERS = ["v1-with-lists", "v2-full", "v2-with-unknown-fields", "v3-full"]
VALID = [*WRITTEN_BY_TODAYS_WRITERS, "v1-first-writers", "v2-minimal", "v3-minimal"]


def sample(folder: str, name: str) -> bytes:
    return (SAMPLES / folder / f"{name}.metadata.json").read_bytes()


def table(name: str) -> TableMetadata:
    return read_table_metadata(sample("table_metadata", name))


def test_every_sample_is_read_by_some_test() -> None:
    names = {path.name.removesuffix(".metadata.json") for path in (SAMPLES / "table_metadata").iterdir()}

    assert names == {*VALID, *BROKEN}


@pytest.mark.parametrize("name", WRITTEN_BY_TODAYS_WRITERS)
def test_sample_is_written_as_it_was_read(name: str) -> None:
    assert json.loads(table(name).to_json()) == json.loads(sample("table_metadata", name))


@pytest.mark.parametrize("name", VALID)
def test_nothing_of_a_sample_is_lost(name: str) -> None:
    """Old forms are brought to new ones: what a writer left out is added, nothing else changes."""
    document: dict[str, Any] = json.loads(sample("table_metadata", name))

    written = json.loads(table(name).to_json())

    if name == "v1-first-writers":
        document["schema"]["schema-id"] = 0
    assert {field: written[field] for field in document} == document
    assert read_table_metadata(json.dumps(written).encode()) == table(name)


@pytest.mark.parametrize("name", VALID)
def test_sample_survives_a_commit_but_for_what_the_commit_changes(name: str) -> None:
    base = table(name)
    update = SetProperties.model_validate({"updates": {"touched": "yes"}})

    after = apply_updates(base, [update], base.last_updated_ms + 1).finish(Location("s3://lake/base.json"))

    changed = {"last-updated-ms", "properties", "metadata-log"}
    before_json, after_json = base.to_object(), after.to_object()
    # A v1 table that had only its old forms gets the new ones beside them.
    grown = {"schema", "partition-spec"} if name == "v1-first-writers" else set()
    assert {key for key in after_json if after_json[key] != before_json.get(key)} <= changed | grown
    assert before_json.keys() <= after_json.keys()


def test_table_of_the_first_writers_is_understood() -> None:
    metadata = table("v1-first-writers")

    assert metadata.current_schema.schema_id == 0
    assert [field.field_id for field in metadata.default_spec.fields] == [1000, 1001]
    assert metadata.last_partition_id == 1001
    assert metadata.default_sort_order.is_unsorted
    assert metadata.snapshot_refs["main"].snapshot_id == 4017231948120937423
    assert metadata.snapshots[0].manifests is not None


def test_full_v2_table_is_understood() -> None:
    metadata = table("v2-full")
    columns = metadata.current_schema.columns

    assert metadata.current_schema.ids_by_name["items.sku"] == 10
    assert len(columns) == metadata.last_column_id == 24
    assert metadata.current_snapshot is not None
    assert metadata.current_snapshot.sequence == metadata.last_sequence == 3
    assert {name: ref.type for name, ref in metadata.snapshot_refs.items()} == {
        "main": "branch",
        "audit": "branch",
        "quarter-end": "tag",
    }
    assert metadata.default_sort_order.order_id == 3
    assert metadata.statistics[0].blob_metadata[0].fields == (1,)


def test_full_v3_table_is_understood() -> None:
    metadata = table("v3-full")

    assert metadata.next_row_id == 130
    assert metadata.snapshots[1].first_row_id == 100
    assert [str(field.type) for field in metadata.current_schema.fields][1:7] == [
        "timestamp_ns",
        "timestamptz_ns",
        "variant",
        "geometry(EPSG:3857)",
        "geography(OGC:CRS84, spherical)",
        "unknown",
    ]
    assert metadata.current_schema.fields[7].initial_default == 0
    assert metadata.encryption_keys is not None


def test_unknown_fields_are_kept_at_every_place() -> None:
    written = table("v2-with-unknown-fields").to_json()

    assert written.count(b"vendor-note") == sample("table_metadata", "v2-with-unknown-fields").count(
        b"vendor-note"
    )


@pytest.mark.parametrize("name", ["v1-with-lists", "v2-full", "v2-minimal"])
def test_pyiceberg_reads_the_same_out_of_what_this_build_writes(name: str) -> None:
    ours = table(name)

    theirs = TableMetadataUtil.parse_raw(ours.to_json().decode())

    assert theirs.format_version == ours.format_version
    assert theirs.last_column_id == ours.last_column_id
    assert theirs.current_schema_id == ours.current_schema_id
    assert theirs.last_partition_id == ours.last_partition_id
    assert theirs.schema().highest_field_id == ours.current_schema.highest_field_id
    assert [field.field_id for field in theirs.spec().fields] == [
        field.field_id for field in ours.default_spec.fields
    ]
    current = theirs.current_snapshot()
    assert (current.snapshot_id if current else None) == (
        ours.current_snapshot.snapshot_id if ours.current_snapshot else None
    )
    assert {name: ref.snapshot_id for name, ref in theirs.refs.items()} == {
        name: ref.snapshot_id for name, ref in ours.snapshot_refs.items()
    }


BROKEN = {
    "bad-format-version-9": "Cannot read unsupported version 9: this build knows 1 to 3",
    "bad-v1-schema-without-type": "schema.type: Field required",
    "bad-v2-without-schemas": "Cannot read metadata: schemas is missing, which v2 needs",
    "bad-v2-without-partition-specs": "Cannot read metadata: partition-specs is missing, which v2 needs",
    "bad-v2-without-last-partition-id": "Cannot read metadata: last-partition-id is missing, which v2 needs",
    "bad-v2-without-sort-orders": "Cannot read metadata: sort-orders is missing, which v2 needs",
    "bad-v2-current-schema-not-there": "Cannot find schema with current-schema-id=7 from schemas",
    "bad-v2-tag-of-a-missing-snapshot": "Snapshot 5 of reference v1 does not exist in the list of snapshots",
    "bad-v3-without-next-row-id": "Cannot read metadata: next-row-id is missing, which v3 needs",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_sample_is_refused_with_what_is_wrong(name: str) -> None:
    with pytest.raises(InvalidMetadata) as caught:
        table(name)

    assert str(caught.value) == BROKEN[name]


def test_view_is_read_and_written_without_loss() -> None:
    content = sample("view_metadata", "two-versions")

    metadata = read_view_metadata(content)

    assert json.loads(metadata.to_json()) == json.loads(content)
    assert metadata.current_version.dialects == {"trino", "spark"}


def test_view_without_its_current_version_is_refused() -> None:
    with pytest.raises(InvalidMetadata, match=r"^Cannot find current version 9 in view versions$"):
        read_view_metadata(sample("view_metadata", "bad-current-version-not-there"))
