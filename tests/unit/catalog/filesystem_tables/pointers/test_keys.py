"""Keys of commits to file-system tables, which are remembered after them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.catalog.commits.door import land_all
from app.catalog.commits.table_commits import TableCommit
from app.catalog.commits.wishes import Wish
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.database.outcomes.idempotency_keys import IdempotencyClaim
from app.engine.change.updates import SetProperties
from app.engine.model.table_metadata import TableMetadata
from app.errors import IdempotencyKeyTaken
from tests.builders.catalogs import CALLER, START_MS
from tests.builders.file_system import identifier

T = identifier("ns.t")


def test_a_request_that_is_sent_twice_at_once_is_done_once_and_no_key_is_lost(tree: Catalog) -> None:
    def wish(key: str) -> Wish[TableMetadata, None]:
        claim = IdempotencyClaim("tester", key, key, START_MS, START_MS + 10**9)
        caller = replace(tree, caller=replace(CALLER, claim=claim))
        return Wish(caller, [TableCommit(T, (), [SetProperties(updates={key: "here"})])])

    wishes = [wish("other"), wish("twice"), wish("twice")]

    land_all(wishes)

    assert set(tree.read_now(TABLES, T)[1].properties) >= {"other", "twice"}
    for each in wishes[:2]:
        each.results()
    with pytest.raises(IdempotencyKeyTaken):
        wishes[2].results()
    for key in ("other", "twice"):
        assert tree.server.idempotency_keys.find("tester", key, START_MS) is not None
