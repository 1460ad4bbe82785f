"""Writers that build on any earlier state of a table: what lands is what each did, and none of its files is lost."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.error_responses import message_for_client
from app.catalog.commits.door import land_all
from app.catalog.commits.dry_runs import dry_run_commit
from app.catalog.commits.rebases import RebaseRequest
from app.catalog.commits.table_commits import TableCommit
from app.catalog.commits.wishes import Wish
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import LoadedTable
from app.engine.change.updates import SetSnapshotRef
from app.engine.expressions.expression_json import parse_expression
from app.engine.model.files.manifests import EntryStatus, ManifestContent
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, SnapshotId
from app.engine.model.table_metadata import TableMetadata
from app.errors import CommitFailed
from tests.builders.catalogs import catalog_on
from tests.builders.commits import commit_table
from tests.builders.racing_writers import rebasing_table, recount, sent, writer, writer_on
from tests.builders.tables import FLIGHTS, load_table
from tests.builders.writing_engine import Commit, WritingEngine

OPERATIONS = ("append", "merge", "delete", "overwrite", "compact", "rewrite", "row_deletes", "equality")
NOTHING_READ = RebaseRequest(conflict_filter=parse_expression(False))
_numbers = itertools.count(1)


@dataclass
class Made:
    """A commit, what it adds and removes, and the files of which its writer may delete some."""

    commit: Commit
    branch: str
    operation: str
    added: set[str]
    removed: set[str]
    own_files: set[str]
    targets: set[str]
    """The data files of which it deletes rows."""


@dataclass
class Content:
    """What must be in a branch."""

    live: set[str] = field(default_factory=set)
    row_deletes: dict[str, set[int]] = field(default_factory=dict)
    """For each data file the snapshots that deleted rows of it."""
    additions: set[int] = field(default_factory=set)
    """The snapshots that brought new rows."""

    def land(self, made: Made) -> None:
        """Note what has landed, and check that nothing came between that it would have had to see."""
        known, snapshot_id = made.commit.base.snapshots_by_id.keys(), made.commit.snapshot.snapshot_id
        assert made.removed <= self.live
        assert made.targets <= self.live
        for path in made.removed:
            # Otherwise deleted rows would come back.
            assert self.row_deletes.get(path, set()) <= known
        if made.operation == "equality":
            assert self.additions <= known
        self.live = self.live - made.removed | made.added
        for path in made.targets:
            self.row_deletes.setdefault(path, set()).add(snapshot_id)
        if made.operation in ("append", "merge", "overwrite"):
            self.additions.add(snapshot_id)

    def copy(self) -> Content:
        """Return the same for a branch that begins here."""
        row_deletes = {path: set(ids) for path, ids in self.row_deletes.items()}
        return Content(set(self.live), row_deletes, set(self.additions))


@dataclass
class Table:
    """A table and what must be in its branches."""

    catalog: Catalog
    name: TableIdentifier
    branches: dict[str, Content] = field(default_factory=lambda: defaultdict(Content))

    def branch_off(self) -> None:
        """Let the other branch begin where main is, if there is none."""
        head = self.load().metadata.snapshot_refs.get("main")
        if head is None or "audit" in self.load().metadata.snapshot_refs:
            return
        ref = SetSnapshotRef(ref_name="audit", snapshot_id=head.snapshot_id, type="branch")
        commit_table(self.catalog, self.name, [], [ref])
        self.branches["audit"] = self.branches["main"].copy()

    def load(self) -> LoadedTable:
        return load_table(self.catalog, self.name)

    def files(self) -> set[str]:
        return {item.location for item in self.catalog.files.list_files(self.load().metadata.location)}

    def live_now(self, branch: str) -> set[str]:
        reader = writer(self.catalog, self.name)
        return {
            entry.file.file_path
            for content in ManifestContent
            for entry in reader.live(reader.head(branch), content)
        }

    def clean_up(self, made: Made, *, landed: bool) -> None:
        """Do what Iceberg's Java client does: delete own manifests and lists that the table does not have."""
        metadata = self.load().metadata
        used = {str(item.manifest_list) for item in metadata.snapshots}
        if landed:
            snapshot = metadata.snapshots_by_id[made.commit.snapshot.snapshot_id]
            used |= {item.manifest_path for item in writer(self.catalog, self.name).manifests(snapshot)}
        for location in made.own_files - used:
            self.catalog.files.delete(Location(location))


def work(data: st.DataObject, engine: WritingEngine, branch: str) -> tuple[str, Commit]:
    """Let a writer do something to a branch as it knows it."""
    live = sorted(entry.file.file_path for entry in engine.live(engine.head(branch), ManifestContent.DATA))
    operation = data.draw(st.sampled_from(OPERATIONS if live else OPERATIONS[:2]))
    some = data.draw(st.sets(st.sampled_from(live), min_size=1)) if live else set()
    # A data file has one deletion vector at most, as far as its writer knows.
    deletes = engine.live(engine.head(branch), ManifestContent.DELETES)
    with_vectors = {str(entry.file.referenced_data_file) for entry in deletes}
    match operation:
        case "append":
            return operation, engine.append(["a"] * data.draw(st.integers(1, 3)), branch=branch)
        case "merge":
            return operation, engine.append(["m"], merge=True, branch=branch)
        case "delete":
            return operation, engine.delete(some, branch=branch)
        case "overwrite":
            return operation, engine.delete(some, ["o"], branch=branch)
        case "compact":
            return operation, engine.compact(some, branch=branch)
        case "rewrite":
            return operation, engine.rewrite_manifests(branch=branch)
        case "equality":
            return operation, engine.delete_with(engine.equality_deletes(), branch=branch)
    files = [
        engine.vector_for(path) if engine.format_version > 2 else engine.position_deletes_for(path)
        for path in some - with_vectors
    ]
    if not files:
        return operation, engine.append(["a"], branch=branch)
    return operation, engine.delete_with(*files, branch=branch)


def make(data: st.DataObject, table: Table, engine: WritingEngine) -> Made:
    before, branch = table.files(), data.draw(st.sampled_from(["main", "main", "audit"]))
    operation, commit = work(data, engine, branch)
    changed: dict[EntryStatus, set[str]] = {status: set() for status in EntryStatus}
    for manifest in engine.manifests(commit.snapshot):
        if manifest.added_snapshot_id == commit.snapshot.snapshot_id:
            for entry in engine.source.entries(manifest):
                if entry.snapshot_id == commit.snapshot.snapshot_id:
                    changed[entry.status].add(entry.file.file_path)
    added, removed = changed[EntryStatus.ADDED], changed[EntryStatus.DELETED]
    targets = targets_of(engine, commit)
    return Made(commit, branch, operation, added, removed, table.files() - before, targets)


def targets_of(engine: WritingEngine, commit: Commit) -> set[str]:
    """Return the data files of which a commit deletes rows."""
    return {
        str(entry.file.referenced_data_file)
        for manifest in engine.manifests(commit.snapshot)
        if manifest.added_snapshot_id == commit.snapshot.snapshot_id
        for entry in engine.source.entries(manifest)
        if entry.file.referenced_data_file is not None and entry.status is EntryStatus.ADDED
    }


@pytest.fixture(scope="module", params=[2, 3])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder: Path = tmp_path_factory.mktemp("rebases")
    return catalog_on(f"sqlite:///{folder}/icetower.db")


@given(data=st.data(), mode=st.sampled_from(["appends", "conflict-free"]))
def test_what_lands_is_what_each_did(catalog: Catalog, version: int, data: st.DataObject, mode: str) -> None:
    name = TableIdentifier(FLIGHTS, f"t{next(_numbers)}")
    rebasing_table(catalog, mode, version, name)
    table = Table(catalog, name)
    states = [table.load().metadata]
    for _ in range(data.draw(st.integers(1, 4))):
        if data.draw(st.integers(0, 2)) == 0:
            table.branch_off()
        made = [
            make(data, table, writer_on(catalog, data.draw(st.sampled_from(states[-3:]))))
            for _ in range(data.draw(st.integers(1, 3)))
        ]
        request = data.draw(st.sampled_from([RebaseRequest(), NOTHING_READ]))
        wishes = [Wish(catalog, [sent(each.commit, request, name)]) for each in made]
        groups = [wishes] if data.draw(st.booleans()) else [[wish] for wish in wishes]
        for group in groups:
            verdicts = [dry_run_of(wish) for wish in group[:1]]
            land_all(group)
            for verdict, wish in zip(verdicts, group, strict=False):
                assert verdict == outcome_of(wish)
            check_second_time(table, group, data.draw(st.booleans()))
        for each, wish in zip(made, wishes, strict=True):
            landed = has_landed(wish)
            assert landed or each.operation != "append"
            assert landed or each.operation != "merge" or mode == "appends"
            if landed:
                table.branches[each.branch].land(each)
            table.clean_up(each, landed=landed)
        states.append(table.load().metadata)

        for branch, content in table.branches.items():
            assert table.live_now(branch) == content.live
            check_numbers(table, branch)


def dry_run_of(wish: Wish[TableMetadata, None]) -> str:
    """Return what a dry run says of a commit."""
    (commit,) = wish.intentions
    assert isinstance(commit, TableCommit)
    found = dry_run_commit(
        wish.catalog, commit.identifier, commit.requirements, commit.updates, commit.rebasing
    )
    return "landed" if found.error is None else message_for_client(found.error, "")


def outcome_of(wish: Wish[TableMetadata, None]) -> str:
    """Return what became of a commit."""
    try:
        wish.results()
    except CommitFailed as error:
        return message_for_client(error, "")
    return "landed"


def check_second_time(table: Table, group: list[Wish[TableMetadata, None]], again: bool) -> None:
    """Send what has landed again, as proxies do: nothing changes, and it is a success."""
    if not again:
        return
    for wish in group:
        if has_landed(wish):
            before = table.load().location
            second = Wish(wish.catalog, wish.intentions)
            assert dry_run_of(second) == "landed"
            land_all([second])
            assert has_landed(second)
            assert table.load().location == before


def has_landed(wish: Wish[TableMetadata, None]) -> bool:
    try:
        wish.results()
    except CommitFailed:
        return False
    return True


def check_numbers(table: Table, branch: str) -> None:
    """Check what a rebase computes anew: totals, and numbers that only grow."""
    metadata, tally = table.load().metadata, recount(table.catalog, table.name, branch)
    reader = writer(table.catalog, table.name)
    snapshot = reader.head(branch)
    assert snapshot is not None
    summary = snapshot.summary or {}
    assert (summary["total-data-files"], summary["total-delete-files"], summary["total-records"]) == (
        str(tally.data_files),
        str(tally.delete_files),
        str(tally.records),
    )
    vectors = [
        entry.file.referenced_data_file
        for entry in reader.live(snapshot, ManifestContent.DELETES)
        if entry.file.file_format == "puffin"
    ]
    assert len(vectors) == len(set(vectors))
    highest = 0
    for earlier, later in itertools.pairwise(metadata.snapshots):
        highest = max(highest, earlier.sequence)
        # The first one of another branch may have a number that was given before.
        assert later.sequence == highest + 1 or later.parent_snapshot_id is None
        parent = metadata.snapshots_by_id.get(later.parent_snapshot_id or SnapshotId(0))
        assert parent is None or later.timestamp_ms >= parent.timestamp_ms
        if earlier.first_row_id is not None and later.first_row_id is not None:
            assert later.first_row_id == earlier.first_row_id + (earlier.added_rows or 0)
