"""The files that a table has named are found however long its history is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection

from app.database.deletions import metadata_sweeps
from app.database.deletions.metadata_sweeps import MetadataSweeps
from app.database.pointers.pointer import PointerKind
from app.engine.model.ids import TableUuid
from tests.contract.database.stores import AUTHOR, NOW_MS, Stores, name


@pytest.mark.parametrize("page", [1, 3, 100])
def test_events_of_a_table_are_read_page_by_page(
    stores: Stores, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores.add_namespace("a")
    stores.add("a.before", uuid="u")
    stores.advance(stores.there("a.before"), "before.json")
    stores.pointers.drop(stores.id, name("a.before"), PointerKind.TABLE, AUTHOR)
    stores.add("a.other")
    stores.add("a.t", uuid="u")
    for number in range(7):
        stores.advance(stores.there("a.t"), f"{number}.json")
    read, sizes = stores.database.read, list[int]()

    def noted(work: Callable[[Connection], Any]) -> Any:
        found = read(work)
        sizes.append(len(found) if isinstance(found, list) else 1)
        return found

    monkeypatch.setattr(metadata_sweeps, "PAGE", page)
    monkeypatch.setattr(stores.database, "read", noted)
    known = MetadataSweeps(stores.database).known_files(stores.there("a.t").id, TableUuid("u"))

    assert known is not None
    own = {"a.t/0.json", *(f"{number}.json" for number in range(7))}
    assert known.locations == own | {"a.before/0.json", "before.json"}
    assert (known.since_ms, known.is_whole, known.moved_ms) == (NOW_MS, True, NOW_MS)
    assert (known.began_at, known.dropped_ms) == ("a.t/0.json", None)
    assert max(sizes) <= page


def test_of_a_table_without_a_uuid_only_its_own_files_are_known(stores: Stores) -> None:
    sweeps = MetadataSweeps(stores.database)
    stores.add_namespace("a")
    stores.add("a.t", uuid="u")
    stores.add("a.other", uuid="w")
    there = stores.there("a.t")

    known = sweeps.known_files(there.id, TableUuid(""))

    assert known is not None
    assert known.locations == {"a.t/0.json"}
    assert sweeps.known_files(there.id + 100, TableUuid("u")) is None
