"""Old metadata files: deleted by the commit that lets them go, or kept for reading the table as it was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.catalog.context.catalog import Catalog
from app.catalog.past.loads import load_as_it_was
from app.engine.change.updates import SetProperties
from app.engine.model.ids import Location
from app.recoveries import PastIsGone
from tests.builders.catalogs import with_server, with_warehouse
from tests.builders.tables import DEPARTURES, commit_to, load_table, table_in

HOUR_MS = 3_600_000
SHORT_LOG = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "1",
}


def later(catalog: Catalog, by_ms: int) -> Catalog:
    """Return the same catalog when time has passed."""
    now_ms = catalog.server.now_ms
    return with_server(catalog, now_ms=lambda: now_ms() + by_ms)


def change(catalog: Catalog, value: int) -> tuple[int, Location]:
    """Commit once; return a moment after it, and where the metadata is."""
    changed = commit_to(catalog, SetProperties(updates={"value": str(value)}))
    assert changed.location is not None
    return catalog.now_ms(), changed.location


def test_without_a_time_to_keep_they_go_at_once(catalog: Catalog) -> None:
    table_in(catalog, properties=SHORT_LOG)
    states = [change(catalog, number) for number in range(4)]

    there = [catalog.files.exists(location) for _, location in states]

    assert there == [False, False, True, True]
    with pytest.raises(PastIsGone, match="has been deleted since"):
        load_as_it_was(replace(catalog, as_of_ms=states[0][0]), DEPARTURES)


@pytest.mark.parametrize("place", ["table", "warehouse"])
def test_they_are_kept_for_the_past_and_go_when_it_is_over(catalog: Catalog, place: str) -> None:
    keep = {"icetower.as-of.metadata-keep-ms": str(HOUR_MS)}
    if place == "warehouse":
        catalog = with_warehouse(catalog, default_properties=keep)
        table_in(catalog, properties=SHORT_LOG)
    else:
        table_in(catalog, properties={**SHORT_LOG, **keep})
    states = [change(catalog, number) for number in range(4)]
    half_an_hour = later(catalog, HOUR_MS // 2)
    states += [change(half_an_hour, number) for number in range(4, 7)]

    for number, (moment, location) in enumerate(states):
        loaded = load_as_it_was(replace(half_an_hour, as_of_ms=moment), DEPARTURES)
        assert loaded.metadata.properties["value"] == str(number)
        assert loaded.location == location

    change(later(catalog, HOUR_MS * 5 // 4), 7)

    # What was replaced more than an hour ago is gone; the fourth was in force until half an hour before.
    there = [catalog.files.exists(location) for _, location in states]
    assert there == [False, False, False, True, True, True, True]
    assert load_table(catalog).metadata.properties["value"] == "7"


def test_what_the_log_still_names_stays(catalog: Catalog) -> None:
    long_log = {**SHORT_LOG, "write.metadata.previous-versions-max": "100"}
    table_in(catalog, properties={**long_log, "icetower.as-of.metadata-keep-ms": "1"})
    states = [change(catalog, number) for number in range(4)]

    change(later(catalog, HOUR_MS), 5)

    assert all(catalog.files.exists(location) for _, location in states)
