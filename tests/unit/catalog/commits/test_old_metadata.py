"""Old metadata files: deleted after commits where the table asks for it, kept for reading the past."""

from __future__ import annotations

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.engine.change.updates import SetProperties
from app.engine.model.ids import Location
from tests.builders.catalogs import START_MS, Clock, with_server
from tests.builders.tables import DEPARTURES, commit_to, load_table, table_in
from tests.unit.catalog.commits.interference import files_in

KEEP_MS = 1_000_000
MINUTE_MS = 60_000


class Times:
    """A table whose commits come at chosen minutes, and what is left of its metadata files."""

    def __init__(self, catalog: Catalog, previous_versions: int, keep: str = str(KEEP_MS)) -> None:
        self.catalog = catalog
        created = table_in(
            catalog,
            properties={
                "write.metadata.delete-after-commit.enabled": "true",
                "write.metadata.previous-versions-max": str(previous_versions),
            },
        )
        catalog.namespaces.update_properties(
            catalog.warehouse.id,
            DEPARTURES.namespace,
            [],
            {"icetower.as-of.metadata-keep-ms": keep},
            catalog.author(),
        )
        assert created.location is not None
        self.written: list[str] = [created.location]

    def at(self, ms: int) -> Catalog:
        return with_server(self.catalog, now_ms=Clock(START_MS + ms))

    def commit(self, ms: int) -> None:
        location = commit_to(self.at(ms), SetProperties(updates={"at": str(ms)})).location
        assert location is not None
        self.written.append(location)

    def left(self) -> list[int]:
        """Return the numbers of the files that are there."""
        there = files_in(self.catalog)
        return [number for number, location in enumerate(self.written) if location in there]


def test_files_stay_for_as_long_as_they_are_kept(catalog: Catalog) -> None:
    times = Times(catalog, previous_versions=1)
    for minute in range(1, 6):
        times.commit(minute * MINUTE_MS)
    assert times.left() == [0, 1, 2, 3, 4, 5]

    # Those go that were replaced until then: the first in minute 1, the second in minute 2.
    times.commit(2 * MINUTE_MS + MINUTE_MS // 2 + KEEP_MS)
    assert times.left() == [2, 3, 4, 5, 6]
    times.commit(60 * MINUTE_MS + KEEP_MS)
    assert times.left() == [6, 7]


def test_files_go_that_only_the_log_has_held_back(catalog: Catalog) -> None:
    times = Times(catalog, previous_versions=3)
    for number in range(1, 8):
        # Each is in the log of three more commits, much longer than it is kept.
        times.commit(number * 10 * KEEP_MS)

    assert times.left() == [4, 5, 6, 7]


def test_file_that_was_current_again_stays_as_long_after_that(catalog: Catalog) -> None:
    times = Times(catalog, previous_versions=1)
    first = times.written[0]
    times.commit(1 * MINUTE_MS)
    named.register(times.at(5 * MINUTE_MS), TABLES, DEPARTURES, Location(first), overwrite=True)
    for minute in (8, 9, 10):
        times.commit(minute * MINUTE_MS)

    times.commit(6 * MINUTE_MS + KEEP_MS)
    assert 0 in times.left()
    times.commit(60 * MINUTE_MS + KEEP_MS)
    assert 0 not in times.left()


@pytest.mark.parametrize("keep", ["soon", "-5", "", "9" * 30])
def test_time_that_makes_no_sense_keeps_all_and_fails_no_commit(catalog: Catalog, keep: str) -> None:
    times = Times(catalog, previous_versions=1, keep=keep)
    for number in range(1, 4):
        times.commit(number * 10 * KEEP_MS)

    assert load_table(catalog).location == times.written[-1]
    assert times.left() == [0, 1, 2, 3]
