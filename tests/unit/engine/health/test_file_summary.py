"""Summaries of the files of one manifest."""

from __future__ import annotations

from app.engine.health.file_summary import rounded_size, summarize
from app.engine.health.live_columns import ContentKind, LiveColumns
from app.engine.model.ids import SpecId
from tests.unit.engine.effort import calls_in

COUNT = 1_000


def test_other_threads_run_while_sizes_and_sort_orders_are_counted() -> None:
    """Writers can choose numbers of which a counter takes minutes to be made, in one call of C."""
    live = LiveColumns(
        SpecId(0),
        [()],
        [0] * COUNT,
        [ContentKind.DATA] * COUNT,
        [1] * COUNT,
        [1_001] * COUNT,
        [1] * COUNT,
        [7] * COUNT,
    )

    found = summarize(live, 100)

    assert found.sizes == {rounded_size(1_001): COUNT}
    assert found.sort_orders == {7: COUNT}
    assert calls_in(lambda: summarize(live, 100)) > 2 * COUNT
