"""Pages of a difference's files: first all that were added, then all that were removed."""

from __future__ import annotations

import pytest

from app.catalog.context.listings import Page
from app.catalog.diffs import _page_of
from app.engine.diff.file_diff import FileDiff
from tests.builders.histories import entry


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8])
@pytest.mark.parametrize(("added", "removed"), [(3, 4), (0, 7), (7, 0)])
def test_pages_have_every_file_once(size: int, added: int, removed: int) -> None:
    diff = FileDiff([entry(f"a{at}") for at in range(added)], [entry(f"r{at}") for at in range(removed)])
    found: list[tuple[str, str]] = []
    start: int | None = 0

    while start is not None:
        page = _page_of(diff, Page(None, size), start, "1 2")
        found += [(change.kind, change.entry.file.file_path) for change in page.items]
        start = None if page.next_after is None else int(page.next_after.partition(" ")[0])

    assert found == [
        *(("added", f"a{at}") for at in range(added)),
        *(("removed", f"r{at}") for at in range(removed)),
    ]
