"""Tokens of plan tasks: which are refused, and what they give when the table, or the server, is not what it was."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.catalog import named
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.scans.plan_tokens import PlanTask, PlanTokens
from app.catalog.scans.planning import ScanPage
from app.engine.change.numbering import LAST_ADDED
from app.engine.change.updates import (
    AddSchema,
    AddSnapshot,
    RemoveSchemas,
    RemoveSnapshots,
    SetCurrentSchema,
    SetSnapshotRef,
    Update,
)
from app.engine.model.data_types.types import NestedField, PrimitiveType
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import FieldId, SchemaId, SnapshotId
from app.engine.scan.scan_scope import ScanRequest, scope_of
from app.errors import NoSuchPlanTask, NoSuchTable
from tests.builders.catalogs import with_rules
from tests.builders.commits import commit_table
from tests.builders.planned_scans import expand_task, files_of, names, page_of, plan_scan
from tests.builders.table_files import TableFiles
from tests.builders.tables import DEPARTURES, FLIGHTS, load_table, table_in

EVERYTHING = ScanRequest()
OTHER = TableIdentifier(FLIGHTS, "other")


@pytest.mark.usefixtures("filled")
def test_tokens_that_we_did_not_write_are_refused(catalog: Catalog) -> None:
    small = with_rules(catalog, scan_page_files=2)
    token = page_of(plan_scan(small, DEPARTURES, EVERYTHING)).tasks[0]
    content = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))

    for place in range(0, len(content), 7):
        tampered = bytearray(content)
        tampered[place] ^= 1
        forged = base64.urlsafe_b64encode(bytes(tampered)).decode().rstrip("=")
        with pytest.raises(NoSuchPlanTask):
            expand_task(catalog, DEPARTURES, forged)
    for nonsense in ("", "a", "é", "====", token[:-5], token + "AAAA"):
        with pytest.raises(NoSuchPlanTask):
            expand_task(catalog, DEPARTURES, nonsense)


@pytest.mark.usefixtures("filled")
def test_token_is_good_for_its_own_table_only_under_any_name(catalog: Catalog) -> None:
    small = with_rules(catalog, scan_page_files=2)
    token = page_of(plan_scan(small, DEPARTURES, EVERYTHING)).tasks[0]
    table_in(catalog, OTHER)

    with pytest.raises(NoSuchPlanTask):
        expand_task(catalog, OTHER, token)
    named.drop(catalog, TABLES, OTHER)
    named.rename(catalog, TABLES, DEPARTURES, OTHER)
    assert names(expand_task(small, OTHER, token))
    with pytest.raises(NoSuchTable):
        expand_task(small, DEPARTURES, token)


@pytest.mark.usefixtures("filled")
def test_token_of_a_table_that_was_dropped_and_made_again_is_refused(catalog: Catalog) -> None:
    small = with_rules(catalog, scan_page_files=2)
    token = page_of(plan_scan(small, DEPARTURES, EVERYTHING)).tasks[0]
    named.drop(catalog, TABLES, DEPARTURES)
    with pytest.raises(NoSuchTable):
        expand_task(catalog, DEPARTURES, token)

    table_in(catalog)
    with pytest.raises(NoSuchPlanTask):
        expand_task(catalog, DEPARTURES, token)


def test_token_of_a_snapshot_that_expired_is_refused(catalog: Catalog, filled: list[SnapshotId]) -> None:
    small = with_rules(catalog, scan_page_files=2)
    token = page_of(plan_scan(small, DEPARTURES, ScanRequest(snapshot_id=filled[0]))).tasks[0]
    commit_table(catalog, DEPARTURES, [], [RemoveSnapshots(snapshot_ids=(filled[0],))])

    with pytest.raises(NoSuchPlanTask):
        expand_task(catalog, DEPARTURES, token)


def test_token_of_a_schema_whose_id_was_given_again_is_refused(
    catalog: Catalog, filled: list[SnapshotId]
) -> None:
    schema = load_table(catalog, DEPARTURES).metadata.current_schema

    def make_current_with(column: str) -> None:
        field = NestedField(
            id=FieldId(schema.highest_field_id + 1),
            name=column,
            required=False,
            type=PrimitiveType("string", "string"),
        )
        wider = schema.replace(fields=(*schema.fields, field))
        updates: list[Update] = [AddSchema(schema_=wider), SetCurrentSchema(schema_id=SchemaId(LAST_ADDED))]
        commit_table(catalog, DEPARTURES, [], updates)

    make_current_with("gate")
    small = with_rules(catalog, scan_page_files=2)
    token = page_of(plan_scan(small, DEPARTURES, EVERYTHING)).tasks[0]
    assert expand_task(catalog, DEPARTURES, token).files
    changes: list[Update] = [
        SetCurrentSchema(schema_id=schema.schema_id),
        RemoveSchemas(schema_ids=(SchemaId(1),)),
    ]
    commit_table(catalog, DEPARTURES, [], changes)
    make_current_with("wing")
    assert load_table(catalog, DEPARTURES).metadata.current_schema.schema_id == 1

    with pytest.raises(NoSuchPlanTask):
        expand_task(catalog, DEPARTURES, token)


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
