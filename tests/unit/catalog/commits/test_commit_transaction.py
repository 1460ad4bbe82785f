from __future__ import annotations

from dataclasses import replace

import pytest

from app.catalog.commits import TableChange, commit_transaction
from app.catalog.context import Catalog
from app.catalog.tables import load_table
from app.database.pointers import Advance
from app.database.warehouses import Warehouse
from app.engine.change.requirements import (
    AssertCreate,
    AssertRefSnapshotId,
    AssertTableUuid,
)
from app.engine.change.updates import (
    SetProperties,
)
from app.engine.model.ids import Location, SnapshotId
from app.errors import (
    RequirementFailed,
)
from tests.builders.catalogs import CALL
from tests.builders.tables import (
    DEPARTURES,
    append,
    namespace_in,
    snapshot_on,
    table_in,
)
from tests.unit.catalog.commits.interference import ARRIVALS, creation_updates, files_in, interfering


def test_transaction_lands_all_its_tables(catalog: Catalog, warehouse: Warehouse) -> None:
    one, two = table_in(catalog, warehouse), table_in(catalog, warehouse, ARRIVALS)
    changes = [
        TableChange(
            table.identifier, [AssertTableUuid(uuid=table.metadata.uuid)], append(snapshot_on(table.metadata))
        )
        for table in (one, two)
    ]

    commit_transaction(catalog, CALL, warehouse, changes)

    assert all(
        load_table(catalog, warehouse, name).metadata.current_snapshot is not None
        for name in (DEPARTURES, ARRIVALS)
    )


def test_transaction_with_one_failing_table_changes_none_and_leaves_no_file(
    catalog: Catalog, warehouse: Warehouse
) -> None:
    one, two = table_in(catalog, warehouse), table_in(catalog, warehouse, ARRIVALS)
    before = files_in(catalog, warehouse)
    changes = [
        TableChange(DEPARTURES, [], append(snapshot_on(one.metadata))),
        TableChange(
            ARRIVALS,
            [AssertRefSnapshotId(ref="main", snapshot_id=SnapshotId(5))],
            append(snapshot_on(two.metadata)),
        ),
    ]

    with pytest.raises(RequirementFailed, match="branch or tag main is missing, expected 5"):
        commit_transaction(catalog, CALL, warehouse, changes)

    assert load_table(catalog, warehouse, DEPARTURES).location == one.location
    assert files_in(catalog, warehouse) == before


def test_transaction_may_create_a_table_and_go_on_with_it(catalog: Catalog, warehouse: Warehouse) -> None:
    namespace_in(catalog, warehouse)
    changes = [
        TableChange(DEPARTURES, [AssertCreate()], creation_updates()),
        TableChange(DEPARTURES, [], [SetProperties(updates={"second": "change"})]),
    ]

    (made,) = commit_transaction(catalog, CALL, warehouse, changes)

    assert made.metadata.properties["second"] == "change"
    assert made.location is not None
    assert made.location.rsplit("/", 1)[1].startswith("00000-")


def test_two_changes_of_one_table_make_one_metadata_file(catalog: Catalog, warehouse: Warehouse) -> None:
    created = table_in(catalog, warehouse)
    first = snapshot_on(created.metadata)
    changes = [
        TableChange(DEPARTURES, [AssertRefSnapshotId(ref="main")], append(first)),
        TableChange(
            DEPARTURES,
            [AssertRefSnapshotId(ref="main", snapshot_id=first.snapshot_id)],
            [SetProperties(updates={"second": "change"})],
        ),
    ]

    (landed,) = commit_transaction(catalog, CALL, warehouse, changes)

    assert [entry.metadata_file for entry in landed.metadata.metadata_log] == [created.location]
    assert landed.metadata.properties["second"] == "change"


def test_table_that_a_transaction_only_asserts_about_must_stay_as_it_was(
    catalog: Catalog, warehouse: Warehouse
) -> None:
    table_in(catalog, warehouse)
    watched = table_in(catalog, warehouse, ARRIVALS)
    meddled, pointers = interfering(catalog)
    seen = pointers.find(warehouse.id, ARRIVALS)
    assert seen is not None
    rival = Location(f"{watched.metadata.location}/metadata/00001-rival.metadata.json")
    moved = watched.metadata.replace(current_schema_id=0, properties={"rival": "first"})
    catalog.files_of(warehouse).write_new(rival, moved.to_json())
    pointers.rivals = [[Advance(seen, rival, seen.uuid)]]
    planned: list[str] = []
    meddled = replace(meddled, step=planned.append)

    commit_transaction(
        meddled,
        CALL,
        warehouse,
        [
            TableChange(DEPARTURES, [], [SetProperties(updates={"a": "b"})]),
            TableChange(ARRIVALS, [AssertTableUuid(uuid=watched.metadata.uuid)], []),
        ],
    )

    assert planned.count("before_put") == 2, (
        "the other table moved in between, so everything was checked again"
    )
    assert load_table(catalog, warehouse, ARRIVALS).metadata.properties == {"rival": "first"}
