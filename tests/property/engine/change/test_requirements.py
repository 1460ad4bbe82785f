"""Laws of requirements: those derived for a base hold on it, and fail where a writer built on another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from app.engine.change.apply import apply_updates
from app.engine.change.requirements import Requirement, check_requirements, is_create
from app.engine.change.updates import AddSchema, AddSpec, SetCurrentSchema, SetSnapshotRef, Update
from app.engine.model.table_metadata import TableMetadata
from app.errors import BadRequest, CommitFailed, RequirementFailed
from tests.builders.derived_requirements import requirements_for
from tests.strategies.table_documents import START_MS, tables
from tests.strategies.update_lists import sensible_updates, wild_updates

REQUIREMENTS: TypeAdapter[tuple[Requirement, ...]] = TypeAdapter(tuple[Requirement, ...])
COMMITS = tables().flatmap(lambda base: st.tuples(st.just(base), sensible_updates(base) | wild_updates(base)))
RACES = tables().flatmap(
    lambda base: st.tuples(st.just(base), sensible_updates(base), sensible_updates(base))
)
Updates = tuple[Update, ...]


@given(COMMITS)
def test_derived_requirements_hold_on_their_base(commit: tuple[TableMetadata, Updates]) -> None:
    base, updates = commit

    requirements = requirements_for(base, updates)

    check_requirements(base, requirements)
    assert not is_create(requirements)
    assert len({repr(item) for item in requirements}) == len(requirements)


@given(COMMITS)
def test_requirements_survive_json(commit: tuple[TableMetadata, Updates]) -> None:
    requirements = requirements_for(*commit)

    content = REQUIREMENTS.dump_json(requirements, by_alias=True, exclude_none=True)

    assert REQUIREMENTS.validate_json(content, by_alias=True, by_name=False) == requirements


@given(RACES)
def test_requirements_fail_when_another_commit_moved_what_they_are_about(
    race: tuple[TableMetadata, Updates, Updates],
) -> None:
    """Two writers with one base: the loser is told if its refs or ids moved, and only then."""
    base, winner, loser = race
    try:
        moved = apply_updates(base, winner, START_MS).finish(None)
    except (BadRequest, CommitFailed):
        return
    has_moved = any(
        (isinstance(update, AddSchema) and moved.last_column_id != base.last_column_id)
        or (isinstance(update, SetCurrentSchema) and moved.current_schema_id != base.current_schema_id)
        or (isinstance(update, AddSpec) and moved.last_partition_id != base.last_partition_id)
        or (isinstance(update, SetSnapshotRef) and _head(moved, update) != _head(base, update))
        for update in loser
    )

    try:
        check_requirements(moved, requirements_for(base, loser))
    except RequirementFailed:
        return
    assert not has_moved


def _head(metadata: TableMetadata, update: SetSnapshotRef) -> int | None:
    ref = metadata.snapshot_refs.get(update.ref_name)
    return ref.snapshot_id if ref else None
