"""Expired files of a table that is to keep its files after all, while some of them go."""

from __future__ import annotations

from app.engine.change.updates import SetProperties
from tests.builders.catalogs import with_server
from tests.builders.queues import work_off_one
from tests.unit.catalog.deletions.test_expired_files import Lake, lake, with_history

__all__ = ["lake"]


def test_nothing_more_goes_once_garbage_collection_is_off(lake: Lake) -> None:
    with_history(lake)
    lake.expire()

    def step(name: str) -> None:
        if name == "expired_content_deleted":
            lake.commit(SetProperties(updates={"gc.enabled": "false"}))

    work_off_one(with_server(lake.cold, step=step).server)
    gone = list(lake.store.deleted)

    assert gone
    assert all(location.endswith(".parquet") for location in gone)
    assert lake.work() == {"kept": 1}
    assert lake.store.deleted == gone
