"""Laws of updates: what was parsed can be sent on, and says the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from app.engine.change.updates import Update
from app.engine.model.table_metadata import TableMetadata
from tests.strategies.table_documents import tables
from tests.strategies.update_lists import sensible_updates, wild_updates

UPDATES: TypeAdapter[tuple[Update, ...]] = TypeAdapter(tuple[Update, ...])
COMMITS = tables().flatmap(lambda base: st.tuples(st.just(base), sensible_updates(base) | wild_updates(base)))


@given(COMMITS)
def test_updates_survive_json(commit: tuple[TableMetadata, tuple[Update, ...]]) -> None:
    _, updates = commit

    content = UPDATES.dump_json(updates, by_alias=True, exclude_none=True)

    assert UPDATES.validate_json(content, by_alias=True, by_name=False) == updates
