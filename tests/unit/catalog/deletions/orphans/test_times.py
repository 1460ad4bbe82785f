"""When files were written, as stores say it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog.context.catalog import Catalog
from app.catalog.deletions.orphan_search import OrphanWish
from app.catalog.deletions.orphans import mark_orphans
from app.engine.model.ids import Location
from app.fileio.files import ListedFile
from app.fileio.local import LocalFiles
from tests.builders.catalogs import new_warehouse, server_on, with_server
from tests.builders.tables import DEPARTURES
from tests.unit.catalog.deletions.test_orphans import table_with_history, there, work_off, write_old


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    server = server_on(f"sqlite:///{tmp_path}/icetower.db", LocalFiles())
    return new_warehouse(server, root=f"file://{tmp_path}/wh")


class WholeSeconds(LocalFiles):
    """A store that says to a second when a single file was written, as HTTP does, and in listings to a millisecond."""

    def find_file(self, location: Location) -> ListedFile | None:
        found = super().find_file(location)
        return found and replace(found, modified_ms=found.modified_ms // 1000 * 1000)


def test_times_that_a_store_says_less_exactly_of_single_files_keep_no_orphan(catalog: Catalog) -> None:
    location = table_with_history(catalog)
    orphan = write_old(f"{location}/data/orphan.parquet")
    path = Path(orphan.removeprefix("file://"))
    then_s = int(path.stat().st_mtime)
    os.utime(path, (then_s, then_s + 0.789))
    catalog = with_server(catalog, files_of=lambda _warehouse: WholeSeconds())

    mark_orphans(catalog, DEPARTURES, OrphanWish(grace_ms=0))
    work_off(catalog)

    assert orphan not in there(location)
