"""A dry run says what the commit then does: for any commit to any table, alone and in transactions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from app.api.error_responses import message_for_client, status_and_type
from app.catalog.commits.dry_runs import dry_run_commit, dry_run_transaction
from app.catalog.commits.table_commits import TableCommit, commit_transaction
from app.catalog.context.catalog import Catalog
from app.database.pointers.history import Author
from app.database.pointers.moves import Creation
from app.database.pointers.pointer import PointerKind
from app.engine.change.requirements import (
    AssertCreate,
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUuid,
    AssertViewUuid,
    Requirement,
)
from app.engine.change.updates import Update
from app.engine.diff.metadata_diff import creation_diff, metadata_diff
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.ids import Location, SchemaId, SnapshotId, SortOrderId, SpecId, TableUuid
from app.engine.model.table_metadata import TableMetadata
from app.errors import CommitStateUnknown, IcetowerError, NoSuchTable
from app.fileio.memory import MemoryFiles
from tests.builders.catalogs import RULES, START_MS, catalog_on, with_server, with_warehouse
from tests.builders.commits import commit_table
from tests.builders.derived_requirements import requirements_for
from tests.builders.tables import load_table, namespace_in, view_in
from tests.strategies.table_documents import tables
from tests.strategies.update_lists import appends, parse_updates, sensible_updates, wild_updates
from tests.unit.catalog.commits.interference import creation_updates

NAMESPACE = Namespace(("flights",))
NEVER = TableUuid("ffffffff-ffff-ffff-ffff-ffffffffffff")
Outcome = tuple[int, str, str] | None
_NUMBERS = itertools.count(1)


@dataclass(eq=False)
class CountedFiles(MemoryFiles):
    """Files in memory that count what is written."""

    writes: int = field(default=0)

    def __post_init__(self) -> None:
        super().__init__()

    def write_new(self, location: Location, content: bytes) -> None:
        self.writes += 1
        super().write_new(location, content)


@dataclass
class Ground:
    """A catalog for many examples, whose clock stands still because some messages tell the time."""

    catalog: Catalog
    files: CountedFiles

    def table(self, base: TableMetadata) -> TableIdentifier:
        """Return a table of a name of its own that is as given."""
        number = next(_NUMBERS)
        identifier = TableIdentifier(NAMESPACE, f"t{number}")
        location = Location(f"memory://wh/t{number}/metadata/00000-{number}.metadata.json")
        self.files.write_new(location, base.to_json())
        creation = Creation(
            self.catalog.warehouse.id, PointerKind.TABLE, identifier, base.uuid, location, "registered"
        )
        self.catalog.server.pointers.check_and_put([creation], Author("tester", "test", START_MS))
        return identifier


@pytest.fixture(scope="module", params=["off", "reject"])
def ground(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ground:
    files = CountedFiles()
    folder: Path = tmp_path_factory.mktemp("ground")
    made = catalog_on(f"sqlite:///{folder}/db", files, rules=replace(RULES, allow_external_locations=True))
    catalog = with_server(made, now_ms=lambda: START_MS + 20_000)
    namespace_in(catalog, NAMESPACE)
    view_in(catalog, TableIdentifier(NAMESPACE, "view"))
    guarded = with_warehouse(catalog, override_properties={"icetower.guard": request.param})
    return Ground(guarded, files)


def outcome_of(error: IcetowerError | None) -> Outcome:
    """Return what a client would be answered with."""
    return None if error is None else (*status_and_type(error), message_for_client(error, ""))


@st.composite
def requirement_lists(
    draw: st.DrawFn, base: TableMetadata, updates: Sequence[Update]
) -> tuple[Requirement, ...]:
    """Return requirements of which most hold, as clients send them, and some do not."""
    kinds: list[st.SearchStrategy[Requirement]] = [
        st.sampled_from([base.uuid, NEVER]).map(lambda uuid: AssertTableUuid(uuid=uuid)),
        st.builds(
            lambda name, snapshot_id: AssertRefSnapshotId(ref=name, snapshot_id=snapshot_id),
            st.sampled_from(["main", "audit", "nope", *base.snapshot_refs]),
            st.sampled_from([None, SnapshotId(7), *base.snapshots_by_id]),
        ),
        st.sampled_from([base.current_schema_id, SchemaId(77)]).map(
            lambda number: AssertCurrentSchemaId(current_schema_id=number)
        ),
        st.sampled_from([base.last_column_id, 0]).map(
            lambda number: AssertLastAssignedFieldId(last_assigned_field_id=number)
        ),
        st.sampled_from([base.last_partition_id or 0, 1]).map(
            lambda number: AssertLastAssignedPartitionId(last_assigned_partition_id=number)
        ),
        st.sampled_from([base.default_spec_id, SpecId(55)]).map(
            lambda number: AssertDefaultSpecId(default_spec_id=number)
        ),
        st.sampled_from([base.default_sort_order_id, SortOrderId(44)]).map(
            lambda number: AssertDefaultSortOrderId(default_sort_order_id=number)
        ),
    ]
    rare: list[st.SearchStrategy[Requirement]] = [
        st.just(AssertCreate()),
        st.just(AssertViewUuid(uuid=NEVER)),
    ]
    if draw(st.integers(0, 9)) < 5:
        return requirements_for(base, updates)
    chosen = kinds if draw(st.integers(0, 9)) else [*kinds, *rare]
    return tuple(draw(st.lists(st.one_of(chosen), max_size=4)))


@st.composite
def changes_of(draw: st.DrawFn, identifier: TableIdentifier, base: TableMetadata) -> TableCommit:
    many = (sensible_updates(base), wild_updates(base), appends(base).map(parse_updates))
    updates = draw(st.one_of(many))
    return TableCommit(identifier, draw(requirement_lists(base, updates)), updates)


@pytest.mark.usefixtures("ground")
@settings(deadline=None)
@given(data=st.data(), base=tables())
def test_verdict_is_what_the_commit_then_does(
    ground: Ground, data: st.DataObject, base: TableMetadata
) -> None:
    identifier = ground.table(base)
    states = [base]
    for _ in range(data.draw(st.integers(1, 4))):
        states.append(load_table(ground.catalog, identifier).metadata)
        # Some writers have not seen the last commits.
        change = data.draw(changes_of(identifier, data.draw(st.sampled_from([states[-1], *states]))))
        # A change may be sent twice, as proxies do.
        for _ in range(data.draw(st.sampled_from([1, 1, 1, 2]))):
            check_verdict(ground, change)


def check_verdict(ground: Ground, change: TableCommit) -> None:
    before = load_table(ground.catalog, change.identifier)
    writes = ground.files.writes

    try:
        verdict = dry_run_commit(ground.catalog, change.identifier, change.requirements, change.updates)
    except CommitStateUnknown:
        # A commit that was sent twice, and whose ref is gone: neither can say whether it has landed.
        with pytest.raises(CommitStateUnknown):
            commit_table(ground.catalog, change.identifier, change.requirements, change.updates)
        return

    assert ground.files.writes == writes
    assert load_table(ground.catalog, change.identifier).location == before.location
    assert verdict.location == before.location
    try:
        after = commit_table(ground.catalog, change.identifier, change.requirements, change.updates)
    except IcetowerError as error:
        event(f"refused: {type(error).__name__}")
        assert outcome_of(verdict.error) == outcome_of(error)  # noqa: PT017 - either outcome is right, and each has its law
        return
    event("landed" if verdict.changes_table else "nothing to do")
    assert verdict.error is None
    assert verdict.changes_table is (after.location != before.location)
    assert {item.result for item in verdict.requirements} <= {"passed", "not-checked"}
    assert {item.result for item in verdict.updates} <= {"applied", "not-tried"}
    if verdict.changes_table:
        assert verdict.difference == metadata_diff(before.metadata, after.metadata)
    else:
        assert verdict.difference is None


@settings(deadline=None)
@given(data=st.data(), bases=st.tuples(tables(), tables()))
def test_verdict_of_a_transaction_is_what_it_then_does(
    ground: Ground, data: st.DataObject, bases: tuple[TableMetadata, TableMetadata]
) -> None:
    present = [ground.table(base) for base in bases]
    changes = [
        data.draw(changes_of(identifier, base))
        for identifier, base in data.draw(
            st.lists(st.sampled_from(list(zip(present, bases, strict=True))), min_size=1, max_size=3)
        )
    ]
    oddities = {
        "nothing more": None,
        "no table": TableCommit(TableIdentifier(NAMESPACE, "nope"), (), ()),
        "a view": TableCommit(TableIdentifier(NAMESPACE, "view"), (), ()),
        "create": TableCommit(new_name(NAMESPACE), (AssertCreate(),), new_table()),
        "create a view's name": TableCommit(
            TableIdentifier(NAMESPACE, "view"), (AssertCreate(),), new_table()
        ),
        "create in no namespace": TableCommit(new_name(Namespace(("nope",))), (AssertCreate(),), new_table()),
    }
    name = data.draw(st.sampled_from(["nothing more"] * 5 + sorted(oddities)))
    odd = oddities[name]
    if odd is not None:
        changes.insert(data.draw(st.integers(0, len(changes))), odd)
    before = [load_table(ground.catalog, item).location for item in present]
    writes = ground.files.writes

    verdict = dry_run_transaction(ground.catalog, changes)

    assert ground.files.writes == writes
    assert [load_table(ground.catalog, item).location for item in present] == before
    try:
        commit_transaction(ground.catalog, changes)
    except IcetowerError as error:
        event(f"{name}, refused: {type(error).__name__}")
        assert outcome_of(verdict.error) == outcome_of(error)  # noqa: PT017 - either outcome is right, and each has its law
        return
    event(f"{name}, landed")
    assert verdict.error is None
    assert [table.error for table in verdict.tables] == [None] * len(verdict.tables)
    for table in verdict.tables:
        if table.difference is not None:
            loaded = load_table(ground.catalog, table.identifier)
            if table.location is None:
                assert table.difference == creation_diff(loaded.metadata)
            else:
                known = bases[present.index(table.identifier)].snapshots_by_id
                assert table.difference.snapshots_added == tuple(
                    each for each in loaded.metadata.snapshots_by_id if each not in known
                )


def test_what_is_no_table_is_refused_like_the_commit(ground: Ground) -> None:
    for name in ("nope", "view"):
        identifier = TableIdentifier(NAMESPACE, name)
        with pytest.raises(NoSuchTable, match=f"Table does not exist: {identifier}"):
            dry_run_commit(ground.catalog, identifier, (), parse_updates([]))


def new_name(namespace: Namespace) -> TableIdentifier:
    return TableIdentifier(namespace, f"new{next(_NUMBERS)}")


def new_table() -> tuple[Update, ...]:
    return tuple(creation_updates())
