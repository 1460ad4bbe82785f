"""Tables as they were, whose snapshots name files that the server has no business with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.catalog.context.catalog import Catalog
from app.catalog.past.loads import load_as_it_was
from app.engine.model.ids import Location
from app.recoveries import PastIsGone
from tests.builders.table_files import TableFiles
from tests.builders.tables import DEPARTURES, append, commit_to, table_in


def at_list(catalog: Catalog, manifest_list: str) -> Catalog:
    """Return the catalog as it was when the table was at a snapshot with this manifest list."""
    snapshot = TableFiles(catalog.files).snapshot(table_in(catalog).metadata, ["a"])
    commit_to(catalog, *append(snapshot.replace(manifest_list=Location(manifest_list))))
    return replace(catalog, as_of_ms=catalog.now_ms())


def test_it_is_not_said_whether_a_file_outside_the_warehouse_is_there(catalog: Catalog) -> None:
    elsewhere = Location("memory://elsewhere/list.avro")
    past = at_list(catalog, elsewhere)

    before = load_as_it_was(past, DEPARTURES)
    catalog.files.write_new(elsewhere, b"there")

    assert load_as_it_was(past, DEPARTURES).json == before.json


def test_snapshot_whose_manifest_list_has_gone_is_not_shown(catalog: Catalog) -> None:
    past = at_list(catalog, f"{catalog.warehouse.root_location}/flights/departures/metadata/gone.avro")

    with pytest.raises(PastIsGone, match="have been deleted since"):
        load_as_it_was(past, DEPARTURES)
