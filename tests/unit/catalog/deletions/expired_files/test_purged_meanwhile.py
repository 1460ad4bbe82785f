"""Expired files of a table that is purged before their grace period is over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.catalog.tables import purge_table
from app.engine.change.updates import SetProperties
from tests.builders.queues import let_queue_age, work_off_one
from tests.builders.tables import DEPARTURES
from tests.unit.catalog.deletions.test_expired_files import ALL_BUT_LAST, LATER_MS, Lake, lake, with_history

__all__ = ["lake"]

FEW_METADATA_FILES = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "1",
}


def test_files_go_also_when_the_purge_has_deleted_all_metadata_files_before(lake: Lake) -> None:
    with_history(lake)
    lake.expire(replace(ALL_BUT_LAST, grace_ms=LATER_MS))
    purge_table(lake.catalog, DEPARTURES)
    assert work_off_one(lake.cold.server)
    assert not work_off_one(lake.cold.server)
    assert "a.parquet" in lake.there()

    let_queue_age(lake.catalog.server.file_deletions, LATER_MS)

    assert lake.work() == {"done": 2}
    assert lake.there() == set()


@pytest.mark.parametrize("is_purged_first", [True, False])
def test_files_go_where_commits_have_deleted_the_metadata_file_of_the_expiry(
    lake: Lake, *, is_purged_first: bool
) -> None:
    lake.commit(SetProperties(updates=FEW_METADATA_FILES))
    with_history(lake)
    lake.expire(replace(ALL_BUT_LAST, grace_ms=LATER_MS if is_purged_first else None))
    for name in ("d", "e", "f"):
        lake.insert(name)
    purge_table(lake.catalog, DEPARTURES)

    assert lake.work() == ({"done": 1, "queued": 1} if is_purged_first else {"done": 2})
    let_queue_age(lake.catalog.server.file_deletions, LATER_MS)

    assert lake.work() == {"done": 2}
    assert lake.there() == set()
