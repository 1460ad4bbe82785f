from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

import pyarrow.parquet as pq
import pytest

from app.catalog.context.catalog import Catalog
from app.catalog.upkeep.partition_statistics import (
    preview_partition_statistics,
    write_statistics_of_partitions,
)
from app.engine.change.updates import (
    AddSpec,
    RemovePartitionSpecs,
    RemoveSnapshots,
    SetDefaultSpec,
    SetProperties,
    UpgradeFormatVersion,
)
from app.engine.model.ids import Location, SnapshotId, SpecId
from app.engine.model.partition_spec import PartitionSpec, UnboundPartitionSpec
from app.errors import CommitStateUnknown, InvalidRequest, NoSuchSnapshot, NotSupported
from tests.builders.catalogs import with_server
from tests.builders.partitioned_files import PartitionedFiles
from tests.builders.tables import DEPARTURES, commit_to
from tests.unit.catalog.commits.interference import files_in, interfering

UNPARTITIONED = PartitionSpec.from_object({"spec-id": 0, "fields": []})


def rows_in(catalog: Catalog, location: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(BytesIO(catalog.files.read(Location(location)))).to_pylist()
    return found


def test_partitions_of_all_specs_are_counted_in_their_order(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    first = table.commit([table.file(("BA", 1)), table.file((None, 0)), table.file(("BA", 1))])
    spec = UnboundPartitionSpec.from_object(
        {"fields": [{"name": "airline", "transform": "identity", "source-id": 2, "field-id": 1000}]}
    )
    commit_to(catalog, AddSpec(spec=spec), SetDefaultSpec(spec_id=SpecId(-1)))
    second = table.commit(
        [table.file(("AA",), spec_id=SpecId(1)), table.file(("BA", 1), content=1, record_count=3)]
    )

    written, location = write_statistics_of_partitions(catalog, DEPARTURES, None)

    assert written.file is not None
    assert (written.snapshot_id, written.partitions) == (second.snapshot_id, 3)
    (named,) = table.metadata.partition_statistics or ()
    assert named == written.file
    assert named.file_size_in_bytes == len(catalog.files.read(named.statistics_path))
    rows = rows_in(catalog, named.statistics_path)
    assert [(row["partition"], row["spec_id"]) for row in rows] == [
        ({"airline": None, "id_bucket": 0}, 0),
        ({"airline": "AA", "id_bucket": None}, 1),
        ({"airline": "BA", "id_bucket": 1}, 0),
    ]
    last = rows[2]
    del last["partition"], last["spec_id"]
    assert last == {
        "data_record_count": 20,
        "data_file_count": 2,
        "total_data_file_size_in_bytes": 2000,
        "position_delete_record_count": 3,
        "position_delete_file_count": 1,
        "equality_delete_record_count": 0,
        "equality_delete_file_count": 0,
        "total_record_count": None,
        "last_updated_at": second.timestamp_ms,
        "last_updated_snapshot_id": second.snapshot_id,
    }
    again, later = write_statistics_of_partitions(catalog, DEPARTURES, first.snapshot_id)
    assert (again.snapshot_id, again.partitions) == (first.snapshot_id, 2)
    assert later != location


@pytest.mark.parametrize("count", [preview_partition_statistics, write_statistics_of_partitions])
def test_specs_that_mean_different_fields_by_one_id_have_no_statistics(
    catalog: Catalog, count: Callable[..., object]
) -> None:
    table = PartitionedFiles.made(catalog, version=1)  # Later versions take no such spec.
    spec = UnboundPartitionSpec.from_object(
        {"fields": [{"name": "id", "transform": "identity", "source-id": 1, "field-id": 1000}]}
    )
    commit_to(catalog, AddSpec(spec=spec), UpgradeFormatVersion(format_version=2))
    table.fill(2)
    commit_to(catalog, SetDefaultSpec(spec_id=SpecId(1)))
    files = files_in(catalog)

    with pytest.raises(
        InvalidRequest, match="partition fields carrier and id of different specs have the same id 1000"
    ):
        count(catalog, DEPARTURES, None)
    assert not any("partition-stats" in file for file in files_in(catalog) - files)


@pytest.mark.parametrize("count", [preview_partition_statistics, write_statistics_of_partitions])
def test_manifests_of_a_spec_that_is_gone_have_no_statistics(
    catalog: Catalog, count: Callable[..., object]
) -> None:
    """A writer may commit files of a spec that was removed at that moment."""
    table = PartitionedFiles.made(catalog)
    table.fill(2)
    files = files_in(catalog)
    spec = UnboundPartitionSpec.from_object(
        {"fields": [{"name": "airline", "transform": "identity", "source-id": 2, "field-id": 1000}]}
    )
    commit_to(catalog, AddSpec(spec=spec), SetDefaultSpec(spec_id=SpecId(-1)))
    commit_to(catalog, RemovePartitionSpecs(spec_ids=(SpecId(0),)))

    with pytest.raises(InvalidRequest, match="a manifest has partition spec 0, which the table has not"):
        count(catalog, DEPARTURES, None)

    assert not any("partition-stats" in file for file in files_in(catalog) - files)


def test_preview_counts_and_writes_nothing(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    table.fill(2)
    files = files_in(catalog)

    would, location = preview_partition_statistics(catalog, DEPARTURES, None)

    assert would.facts(location, dry_run=True) == {
        "dry-run": True,
        "metadata-location": location,
        "snapshot-id": table.head().snapshot_id,
        "partitions": 6,
    }
    assert files_in(catalog) == files


def test_tables_without_partitions_or_snapshots_are_refused(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    with pytest.raises(InvalidRequest, match="it has no current snapshot"):
        write_statistics_of_partitions(catalog, DEPARTURES, None)
    table.fill(1)
    with pytest.raises(NoSuchSnapshot):
        write_statistics_of_partitions(catalog, DEPARTURES, SnapshotId(7))
    commit_to(
        catalog, UpgradeFormatVersion(format_version=3), SetProperties(updates={"encryption.key-id": "k"})
    )
    with pytest.raises(NotSupported, match="encrypted"):
        write_statistics_of_partitions(catalog, DEPARTURES, None)


def test_an_unpartitioned_table_is_refused(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog, spec=UNPARTITIONED)
    table.commit([table.file(())])

    with pytest.raises(InvalidRequest, match="it has no partition fields"):
        write_statistics_of_partitions(catalog, DEPARTURES, None)


def test_after_an_unknown_outcome_the_file_stays(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    table.fill(1)
    unsure, pointers = interfering(catalog)
    pointers.lose_reply = pointers.blind = True

    with pytest.raises(CommitStateUnknown):
        write_statistics_of_partitions(unsure, DEPARTURES, None)

    (named,) = table.metadata.partition_statistics or ()
    assert len(rows_in(catalog, named.statistics_path)) == 6


def test_current_snapshot_that_expires_meanwhile_is_followed_by_its_successor(catalog: Catalog) -> None:
    table = PartitionedFiles.made(catalog)
    first = table.commit([table.file(("AA", 0))])
    others: list[SnapshotId] = []

    def meanwhile(reached: str) -> None:
        if reached == "statistics_stored" and not others:
            others.append(table.commit([table.file(("BA", 0))]).snapshot_id)
            commit_to(catalog, RemoveSnapshots(snapshot_ids=(first.snapshot_id,)))

    changing = with_server(catalog, step=meanwhile)
    written, _ = write_statistics_of_partitions(changing, DEPARTURES, None)

    assert [written.snapshot_id] == others
    assert written.partitions == 2
    (named,) = table.metadata.partition_statistics or ()
    assert named == written.file
    assert [file for file in files_in(catalog) if "partition-stats" in file] == [named.statistics_path]
    with pytest.raises(NoSuchSnapshot):
        write_statistics_of_partitions(catalog, DEPARTURES, first.snapshot_id)
