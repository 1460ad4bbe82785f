"""Pages of a difference's files: first all that were added, then all that were removed."""

from __future__ import annotations

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.listings import Page
from app.catalog.diffs import _kinship, _page_of, load_diff
from app.engine.diff.file_diff import FileDiff
from app.engine.model.ids import NO_SNAPSHOT, Location, SnapshotId
from app.engine.model.snapshot import MetadataLogEntry
from app.errors import InvalidLocation
from tests.builders.catalogs import new_warehouse
from tests.builders.histories import branch, entry, history, line, snapshot
from tests.builders.table_files import TableFiles
from tests.builders.tables import DEPARTURES, append, commit_to, table_in


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


WHOLE = history([*line(4), snapshot(9, 2)], {"main": branch(4)})
CUT = history([*line(4)[2:], snapshot(9, 2)], {"main": branch(4)})
"""The same, when the first two have expired."""


@pytest.mark.parametrize(
    ("before", "after", "relation", "shared", "between"),
    [
        (1, 4, None, None, []),  # of WHOLE and CUT: what came after the first is not known
        (2, 4, "descendant", 2, [3, 4]),
        (3, 4, "descendant", 3, [4]),
        (4, 3, "ancestor", 3, []),
        (9, 4, "diverged", 2, []),
    ],
)
def test_relation_is_told_as_far_as_it_is_known_once_snapshots_have_expired(
    before: int, after: int, relation: str | None, shared: int | None, between: list[int]
) -> None:
    of_before = WHOLE if before < 3 else CUT
    ends = of_before.snapshots_by_id[SnapshotId(before)], CUT.snapshots_by_id[SnapshotId(after)]

    found = _kinship(ends[0], of_before, ends[1], CUT)

    assert (found.relation, found.common_ancestor, list(found.between)) == (relation, shared, between)
    whole = _kinship(ends[0], WHOLE, WHOLE.snapshots_by_id[SnapshotId(after)], WHOLE)
    assert relation in (None, whole.relation)


def test_snapshots_that_parted_have_diverged() -> None:
    three, nine = (WHOLE.snapshots_by_id[SnapshotId(number)] for number in (3, 9))
    apart = history([snapshot(1), snapshot(2)], {})

    assert _kinship(three, WHOLE, nine, WHOLE).relation == "diverged"
    assert _kinship(three, WHOLE, nine, WHOLE).common_ancestor == 2
    assert _kinship(apart.snapshots[0], apart, apart.snapshots[1], apart).relation == "diverged"


def test_a_metadata_file_of_another_warehouse_is_not_shown_though_a_registered_log_names_it(
    catalog: Catalog,
) -> None:
    other = table_in(new_warehouse(catalog.server, "other", "memory://other"), properties={"owner": "anna"})
    assert other.location is not None
    made = table_in(catalog)
    logged = MetadataLogEntry(timestamp_ms=made.metadata.last_updated_ms, metadata_file=other.location)
    planted = Location(f"{made.metadata.location}/metadata/00007-planted.metadata.json")
    catalog.files.write_new(planted, made.metadata.replace(metadata_log=(logged,)).to_json())
    named.register(catalog, TABLES, DEPARTURES, planted, overwrite=True)

    for before, after in ((other.location, None), (None, planted), ("metadata:0", planted)):
        with pytest.raises(InvalidLocation, match=r"metadata file .* is outside warehouse wh"):
            load_diff(catalog, DEPARTURES, before, after, Page())


def test_before_a_snapshot_whose_parent_is_written_as_none_was_nothing(catalog: Catalog) -> None:
    """So old writers put it."""
    made = table_in(catalog)
    first = TableFiles(catalog.files).snapshot(made.metadata, ["a"]).replace(parent_snapshot_id=NO_SNAPSHOT)
    commit_to(catalog, *append(first))

    found = load_diff(catalog, DEPARTURES, None, None, Page())

    assert found.before.snapshot is None
    assert (found.relation, list(found.between)) == ("descendant", [first.snapshot_id])
