from __future__ import annotations

from collections import Counter

import pytest

from app.engine.health.file_facts import file_facts
from app.engine.health.file_summary import FileSummary
from tests.unit.engine.documents import order_json, sort_json, table


@pytest.mark.parametrize(("default", "old", "unnamed"), [(1, 4, 5 + 3), (0, 2 + 4, 5)])
def test_files_that_name_the_unsorted_order_may_be_sorted_all_the_same(
    default: int, old: int, unnamed: int
) -> None:
    orders = [order_json(sort_json(1)), order_json(sort_json(2), order_id=2)]
    unsorted = [order_json(order_id=0)] if default == 0 else []
    metadata = table(sort_orders=[*unsorted, *orders], default_sort_order_id=default)
    named: Counter[int | None] = Counter({None: 5, 0: 3, 1: 2, 2: 4})

    facts = file_facts(metadata, FileSummary(0, sort_orders=named))

    assert (facts.old_order_files, facts.unnamed_order_files) == (old, unnamed)
