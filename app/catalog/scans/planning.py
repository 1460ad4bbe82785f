"""Planning scans: the files a query has to read, at once, in pieces, or in the background."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import Final, assert_never

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.past_snapshots import check_snapshot_remains
from app.catalog.manifests.table_manifests import TableManifests
from app.catalog.scans.plan_tokens import PlanTask, PlanTokens
from app.database.connections.clock import is_held_at
from app.database.pointers.pointer import Pointer
from app.database.scan_plans import ScanPlan
from app.engine.expressions.expression_json import to_json
from app.engine.model.files.manifests import ManifestFile
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import FieldId
from app.engine.model.table_metadata import TableMetadata
from app.engine.scan.scan_planner import Candidate, MakeIndex, PlannedColumns, PlannedFile, ScanPlanner
from app.engine.scan.scan_scope import ScanRequest, ScanScope, scope_of
from app.engine.selection.deletes import DeleteIndex
from app.errors import IcetowerError, NoSuchPlan, NoSuchPlanTask

log = logging.getLogger(__name__)

LEASE_MS: Final = 60_000
"""How long a plan counts as being made without a sign from the server that makes it."""
_PLAN_ID: Final = re.compile(r"[0-9a-f-]{36}")
_TASK_BYTES: Final = 32 << 20
_MOST_PAGE_BYTES: Final = 32 << 20
_MOST_TOKEN_BYTES: Final = 8 << 20
_BYTES_A_KEY: Final = 500
_BYTES_A_DELETE: Final = 1_500


@dataclass(frozen=True, slots=True)
class ScanPage:
    """Files of a scan, and the plan tasks that have the rest."""

    files: Sequence[Iterable[PlannedFile]]
    """In runs: those of one manifest together."""
    tasks: Sequence[str]
    metadata: TableMetadata
    stats_ids: frozenset[FieldId] = frozenset()


@dataclass(frozen=True, slots=True)
class Submitted:
    """A scan that is being planned in the background."""

    plan_id: str


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A plan that was cancelled."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A plan that could not be made."""

    error: str
    """The name of the class of the error."""
    message: str


@dataclass(frozen=True, slots=True)
class Completed:
    """A scan that was planned at once."""

    plan_id: str
    content: bytes
    """The page as JSON."""


Write = Callable[[ScanPage], bytes]
_Run = list[PlannedFile] | PlannedColumns


def plan_scan(
    catalog: Catalog, identifier: TableIdentifier, request: ScanRequest, write: Write
) -> Completed | Submitted:
    """Plan a scan, at once or in the background.

    A metadata file never changes, so the same request has the same answer, which is kept for a while.

    Raises:
        NoSuchTable: no table has this name.
        InvalidRequest: a snapshot or column does not exist.
        InvalidFilter: the filter does not fit the columns.
        NotSupported: a column is selected whose values the files of a plan cannot bring.
        PastIsGone: the warehouse is shown as it was, and the files of the snapshot are gone.
        InvalidLocation, CorruptMetadata, FileMissing, FilesUnavailable: a manifest cannot be read.
        Unavailable: too many scans are being planned.
    """
    catalog.permit("plan_scan", identifier)
    pointer, metadata = catalog.read_now(TABLES, identifier)
    check_snapshot_remains(catalog, identifier, metadata)  # What is kept of a scan does not say so.
    catalog.server.last_reads.note(pointer.id, catalog.now_ms())
    # By its text: in Python 1, 1.0 and true are equal, and so are 0.0 and -0.0.
    key = _key(catalog, pointer, repr(request))
    kept = catalog.server.scan_answers.find(key)
    if kept is not None:
        return Completed(catalog.server.new_uuid(), kept)
    scan = _Scan(catalog, pointer, metadata, scope_of(metadata, request))
    if scan.must_wait:
        return _submit(scan, request.min_rows)
    content = write(scan.first_page(request.min_rows))
    catalog.server.scan_answers.put(key, content, len(content) + _BYTES_A_KEY)
    return Completed(catalog.server.new_uuid(), content)


def expand_task(catalog: Catalog, identifier: TableIdentifier, token: str, write: Write) -> bytes:
    """Return the files of a plan task as JSON; it may be asked for many times, on any server.

    Raises:
        NoSuchTable: no table has this name.
        NoSuchPlanTask: the token is not of this table, or its snapshot is gone.
        InvalidLocation, CorruptMetadata, FileMissing, FilesUnavailable: a manifest cannot be read.
    """
    catalog.permit("expand_task", identifier)
    pointer, metadata = catalog.read_now(TABLES, identifier)
    task = PlanTokens(catalog, pointer).read(token, metadata)
    key = _key(catalog, pointer, token)
    kept = catalog.server.scan_answers.find(key)
    if kept is not None:
        return kept
    content = write(_Scan(catalog, pointer, metadata, task.scope).page_of(task))
    catalog.server.scan_answers.put(key, content, len(content) + _BYTES_A_KEY)
    return content


def _key(catalog: Catalog, pointer: Pointer, asked: str) -> Hashable:
    # A filter may be long; its digest is not.
    digest = sha256(asked.encode("utf-8", "surrogatepass")).digest()
    # With the store: a warehouse's settings may be changed to another one.
    asked_of = catalog.files, pointer.id, pointer.metadata_location, pointer.registration
    return asked_of, catalog.rules.scan_page_files, digest


def fetch_plan(
    catalog: Catalog, identifier: TableIdentifier, plan_id: str
) -> ScanPage | Submitted | Cancelled | Failed:
    """Return the state or the result of a scan that is planned in the background.

    Raises:
        NoSuchTable: no table has this name.
        NoSuchPlan: the table has no such plan, or it has expired.
    """
    catalog.permit("fetch_plan", identifier)
    pointer = catalog.load(TABLES, identifier)
    if not _PLAN_ID.fullmatch(plan_id):
        raise NoSuchPlan(plan_id)
    now_ms = catalog.now_ms()
    plan = catalog.server.scan_plans.find(plan_id, pointer.id, now_ms)
    is_open = plan is not None and plan.state == "submitted"
    if plan is not None and is_open and not is_held_at(plan.leased_until_ms, now_ms, LEASE_MS):
        lost = {
            "error": "Unavailable",
            "message": "The server that planned the scan has stopped: plan it again",
        }
        catalog.server.scan_plans.finish(plan_id, "failed", json.dumps(lost))
        plan = catalog.server.scan_plans.find(plan_id, pointer.id, catalog.now_ms())
    if plan is None:
        raise NoSuchPlan(plan_id)
    match plan.state:
        case "submitted":
            return Submitted(plan_id)
        case "cancelled":
            return Cancelled()
        case "failed":
            return Failed(**json.loads(plan.result or "{}"))
        case "completed":
            return ScanPage((), json.loads(plan.result or "[]"), catalog.read_now(TABLES, identifier)[1])
        case state:
            assert_never(state)


def cancel_plan(catalog: Catalog, identifier: TableIdentifier, plan_id: str) -> None:
    """Cancel a plan; a plan that is finished or unknown stays as it is.

    Raises:
        NoSuchTable: no table has this name.
    """
    catalog.permit("cancel_plan", identifier)
    pointer = catalog.load(TABLES, identifier)
    if _PLAN_ID.fullmatch(plan_id):
        catalog.server.scan_plans.cancel(plan_id, pointer.id)


class _Scan:
    """One scan of one table."""

    def __init__(
        self,
        catalog: Catalog,
        pointer: Pointer,
        metadata: TableMetadata,
        scope: ScanScope,
    ) -> None:
        self.catalog = catalog
        self.pointer = pointer
        self.scope = scope
        self._metadata = metadata
        # What is a column's id in a filter becomes its name, which may be long.
        filters = scope.rows.filter, scope.rows.bound
        self._filter_bytes = max(len(json.dumps(to_json(filter_))) for filter_ in filters)
        # A filter may list a hundred thousand values, and is repeated with each file that has rows to filter.
        most = max(1, _MOST_PAGE_BYTES // self._filter_bytes)
        self._page_files = min(catalog.rules.scan_page_files, most)
        source = TableManifests(catalog, metadata)
        self.planner = ScanPlanner(metadata, scope, source, self._deletes)

    @property
    def must_wait(self) -> bool:
        """Whether too much has to be read to answer at once."""
        wanted = list(self.planner.delete_manifests)
        if not self._is_left_to_tasks:
            wanted += [candidate.manifest for candidate in self.planner.candidates]
        return sum(manifest.manifest_length for manifest in wanted) > self.catalog.rules.scan_submit_bytes

    def first_page(self, min_rows: int | None) -> ScanPage:
        """Return the files that fit into an answer, and tasks for the rest."""
        candidates = self.planner.candidates
        if min_rows is None and self._is_left_to_tasks:
            return self._page([], self._tasks_of(candidates, share=1.0))
        runs: list[_Run] = []
        room, looked_at, sure_rows = self._page_files, 0, 0
        for number, candidate in enumerate(candidates):
            if min_rows is not None and sure_rows >= min_rows:
                return self._page(runs, [])
            run, has_more = _part(self.planner.files(candidate.manifest), 0, room)
            runs.append(run)
            sure_rows += 0 if min_rows is None else _sure_rows(run)
            looked_at += _live_files(candidate.manifest)
            if has_more:
                rest = [PlanTask(self.scope, [candidate.place], room)]
                share = self._page_files / looked_at if looked_at else 1.0
                return self._page(runs, rest + self._tasks_of(candidates[number + 1 :], share))
            room -= len(run)
        return self._page(runs, [])

    def page_of(self, task: PlanTask) -> ScanPage:
        """Return the files of a task, or the first of them and a task for the rest.

        Raises:
            NoSuchPlanTask: it names manifests that the snapshot does not have.
        """
        by_place = {candidate.place: candidate for candidate in self.planner.candidates}
        runs: list[_Run] = []
        room, skip = self._page_files, task.skip
        for number, place in enumerate(task.places):
            if not 0 <= place < self.planner.manifest_count:
                raise NoSuchPlanTask
            if place not in by_place:
                skip = 0
                continue  # a server that prunes worse made the task
            run, has_more = _part(self.planner.files(by_place[place].manifest), skip, room)
            runs.append(run)
            if has_more:
                return self._page(runs, [PlanTask(self.scope, task.places[number:], skip + room)])
            room, skip = room - len(run), 0
            if not room and number + 1 < len(task.places):
                return self._page(runs, [PlanTask(self.scope, task.places[number + 1 :])])
        return self._page(runs, [])

    def matching(self, *, counts_rows: bool) -> Iterator[tuple[Candidate, int, int]]:
        """Yield the manifests with files of the scan, how many, and if wanted their sure rows."""
        for candidate in self.planner.candidates:
            found = self.planner.files(candidate.manifest)
            if isinstance(found, PlannedColumns):
                yield candidate, len(found), found.sure_rows if counts_rows else 0
                continue
            count = rows = 0
            for planned in found:
                count += 1
                rows += planned.sure_rows
            yield candidate, count, rows

    def tokens_of(self, tasks: Sequence[PlanTask]) -> list[str]:
        return PlanTokens(self.catalog, self.pointer).write(tasks) if tasks else []

    def grouped(self, counted: Sequence[tuple[Candidate, float]]) -> list[PlanTask]:
        """Return tasks of about a page of files each, which are not too large to read."""
        # The filter is in every token too.
        most = max(1, _MOST_TOKEN_BYTES // self._filter_bytes)
        at_least = -(-len(counted) // most)
        tasks: list[PlanTask] = []
        places: list[int] = []
        files, size = 0.0, 0
        for candidate, count in counted:
            length = candidate.manifest.manifest_length
            is_full = files + count > self._page_files or size + length > _TASK_BYTES
            if places and is_full and len(places) >= at_least:
                tasks.append(PlanTask(self.scope, places))
                places, files, size = [], 0.0, 0
            places.append(candidate.place)
            files += count
            size += length
        return [*tasks, PlanTask(self.scope, places)] if places else tasks

    def _tasks_of(self, candidates: Sequence[Candidate], share: float) -> list[PlanTask]:
        return self.grouped([(item, share * _live_files(item.manifest)) for item in candidates])

    @property
    def _is_left_to_tasks(self) -> bool:
        """Whether the answer is surely too long: many files, and no filter."""
        live = sum(_live_files(candidate.manifest) for candidate in self.planner.candidates)
        return self.planner.is_everything and live > self._page_files

    def _page(self, files: Sequence[_Run], tasks: Sequence[PlanTask]) -> ScanPage:
        return ScanPage(files, self.tokens_of(tasks), self._metadata, self.scope.stats_ids)

    def _deletes(self, make: MakeIndex) -> DeleteIndex:
        """Return the deletes of the scan, which many tasks of it share."""
        scope = self.scope
        snapshot = scope.snapshot
        key = (
            self.catalog.files,
            self.pointer.id,
            self.pointer.registration,
            snapshot and (snapshot.manifest_list or snapshot.manifests),
            scope.rows.schema.fingerprint,  # ids of removed schemas are given again
            json.dumps(to_json(scope.rows.filter)),
            scope.rows.case_sensitive,
        )

        def read() -> tuple[DeleteIndex, int]:
            index = make()
            return index, _BYTES_A_DELETE * (index.count + 1)

        return self.catalog.server.delete_indexes.find_or_read(key, read)


def _part(found: Iterable[PlannedFile], skip: int, most: int) -> tuple[_Run, bool]:
    """Return some files of a manifest, at most so many, and whether there are more behind them."""
    if isinstance(found, PlannedColumns):
        return found.part(skip, skip + most), len(found) > skip + most
    rest = iter(found)
    run = list(islice(rest, skip, skip + most))
    return run, next(rest, None) is not None


def _sure_rows(run: _Run) -> int:
    return run.sure_rows if isinstance(run, PlannedColumns) else sum(planned.sure_rows for planned in run)


def _live_files(manifest: ManifestFile) -> int:
    """Return how many live files a manifest names, estimated if the writer did not count them."""
    count = manifest.live_files
    return max(1, manifest.manifest_length // 200) if count is None else count


def _submit(scan: _Scan, min_rows: int | None) -> Submitted:
    catalog, plan_id = scan.catalog, scan.catalog.server.new_uuid()
    now_ms = catalog.now_ms()
    plan = ScanPlan(
        plan_id,
        scan.pointer.id,
        "submitted",
        None,
        now_ms + LEASE_MS,
        now_ms + catalog.rules.scan_plan_lifetime_ms,
    )
    catalog.server.scan_plans.add(plan, now_ms)

    def keep_alive() -> bool:
        return catalog.server.scan_plans.renew(plan_id, catalog.now_ms() + LEASE_MS)

    try:
        catalog.server.scan_workers.start(
            catalog.warehouse.name, lambda: _plan(scan, plan_id, min_rows), keep_alive
        )
    except IcetowerError:
        catalog.server.scan_plans.cancel(plan_id, scan.pointer.id)
        raise
    return Submitted(plan_id)


def _plan(scan: _Scan, plan_id: str, min_rows: int | None) -> None:
    """Find the manifests with files of a scan, and store tasks for them."""
    catalog = scan.catalog
    plans = catalog.server.scan_plans
    try:
        counted: list[tuple[Candidate, float]] = []
        sure_rows, renew_at_ms = 0, 0
        for candidate, count, rows in scan.matching(counts_rows=min_rows is not None):
            if catalog.server.scan_workers.is_stopping:
                _fail(catalog, plan_id, "Unavailable", "The server stops: plan the scan again")
                return
            if catalog.now_ms() >= renew_at_ms:
                if not plans.renew(plan_id, catalog.now_ms() + LEASE_MS):
                    return  # cancelled
                renew_at_ms = catalog.now_ms() + LEASE_MS // 4
            if count:
                counted.append((candidate, count))
                sure_rows += rows
            if min_rows is not None and sure_rows >= min_rows:
                break
        plans.finish(plan_id, "completed", json.dumps(scan.tokens_of(scan.grouped(counted))))
    except IcetowerError as error:
        _fail(catalog, plan_id, type(error).__name__, str(error))


def _fail(catalog: Catalog, plan_id: str, error: str, message: str) -> None:
    try:
        catalog.server.scan_plans.finish(plan_id, "failed", json.dumps({"error": error, "message": message}))
    except IcetowerError as failure:
        # Its lease runs out, which has the same effect a little later.
        log.warning("could not say that plan %s failed (%s): %s", plan_id, message, failure)
