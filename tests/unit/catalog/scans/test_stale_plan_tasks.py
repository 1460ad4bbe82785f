"""Plan tasks that are fetched when the table, or the server, is not what it was."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.scans.plan_tokens import PlanTask, PlanTokens
from app.catalog.scans.planning import ScanPage
from app.engine.change.updates import AddSnapshot, RemoveSnapshots, SetSnapshotRef, Update
from app.engine.model.ids import SnapshotId
from app.engine.scan.scan_scope import ScanRequest, scope_of
from app.errors import NoSuchPlanTask
from tests.builders.catalogs import with_rules
from tests.builders.commits import commit_table
from tests.builders.planned_scans import expand_task, files_of, plan_scan
from tests.builders.table_files import TableFiles
from tests.builders.tables import DEPARTURES, load_table, table_in


@pytest.fixture
def small(catalog: Catalog) -> Catalog:
    """A catalog that leaves to tasks what are more than two files."""
    return with_rules(catalog, scan_page_files=2)


@pytest.fixture
def appends(small: Catalog) -> list[SnapshotId]:
    """Four snapshots of two files each."""
    table_in(small)
    files = TableFiles(small.files)
    return [append(small, files, letter) for letter in "abcd"]


def append(catalog: Catalog, files: TableFiles, letter: str, removed: Sequence[str] = ()) -> SnapshotId:
    snapshot = files.snapshot(load_table(catalog, DEPARTURES).metadata, [f"{letter}0", f"{letter}1"], removed)
    moved = SetSnapshotRef(ref_name="main", snapshot_id=snapshot.snapshot_id, type="branch")
    updates: list[Update] = [AddSnapshot(snapshot=snapshot), moved]
    commit_table(catalog, DEPARTURES, [], updates)
    return snapshot.snapshot_id


def tasks_of(catalog: Catalog, start: SnapshotId, end: SnapshotId) -> list[str]:
    page = plan_scan(catalog, DEPARTURES, ScanRequest(start_snapshot_id=start, end_snapshot_id=end))
    assert isinstance(page, ScanPage)
    assert files_of(page) == []
    return list(page.tasks)


def expire(catalog: Catalog, *snapshot_ids: SnapshotId) -> None:
    commit_table(catalog, DEPARTURES, [], [RemoveSnapshots(snapshot_ids=snapshot_ids)])


def test_start_that_expired_is_still_known_as_a_parent(small: Catalog, appends: list[SnapshotId]) -> None:
    tasks = tasks_of(small, appends[0], appends[3])

    expire(small, appends[0])

    pages = [expand_task(small, DEPARTURES, token) for token in tasks]
    names = [[Path(planned.file.file_path).stem for planned in files_of(page)] for page in pages]
    assert names == [["b0", "b1"], ["c0", "c1"], ["d0", "d1"]]


def test_task_of_a_range_that_is_not_whole_is_refused(small: Catalog, appends: list[SnapshotId]) -> None:
    """Manifests are named by their places in the range, where others would be now."""
    tasks = tasks_of(small, appends[0], appends[3])

    expire(small, appends[0], appends[1])

    for token in tasks:
        with pytest.raises(NoSuchPlanTask):
            expand_task(small, DEPARTURES, token)


def test_place_in_a_manifest_that_is_not_read_skips_no_file_of_the_next(small: Catalog) -> None:
    """As where a server made the task that found more of a manifest than this one does."""
    table_in(small)
    files = TableFiles(small.files)
    append(small, files, "a")
    append(small, files, "b", removed=["a0", "a1"])
    pointer, metadata = small.read_now(TABLES, DEPARTURES)
    task = PlanTask(scope_of(metadata, ScanRequest()), [0, 1], skip=1)
    (token,) = PlanTokens(small, pointer).write([task])

    page = expand_task(small, DEPARTURES, token)

    assert [Path(planned.file.file_path).stem for planned in files_of(page)] == ["b0", "b1"]
