"""Laws of view commits: whatever the update list, what comes out is sound, or the refusal is one of ours."""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st

from app.engine.change.updates import Update
from app.engine.change.view_apply import apply_view_updates, new_view_metadata
from app.engine.model.ids import Location, TableUuid
from app.engine.model.view_metadata import ViewMetadata, read_view_metadata
from app.errors import BadRequest
from tests.strategies.view_documents import START_MS, sensible_view_updates, views, wild_view_updates

UUID = TableUuid("7e59e3ff-91c5-4a8a-a2f3-cb4a6b9d3b0f")
COMMITS = views().flatmap(
    lambda base: st.tuples(st.just(base), sensible_view_updates(base) | wild_view_updates(base))
)
Commit = tuple[ViewMetadata, tuple[Update, ...]]


def committed(commit: Commit) -> ViewMetadata | None:
    base, updates = commit
    try:
        metadata = apply_view_updates(base, updates, START_MS).finish()
    except BadRequest as error:
        event(type(error).__name__)
        assert str(error)  # noqa: PT017 - either outcome is right, and each has its law
        return None
    event("landed")
    return metadata


@given(COMMITS)
def test_any_update_list_ends_in_a_sound_view_or_in_a_refusal(commit: Commit) -> None:
    base = commit[0]

    metadata = committed(commit)

    if metadata is not None:
        assert read_view_metadata(metadata.to_json()) == metadata
        assert metadata.uuid == base.uuid
        assert metadata.unknown_fields == base.unknown_fields
        assert len(metadata.version_log) <= len(base.version_log) + 1
        assert metadata.schemas[: len(base.schemas)] == base.schemas
        for version in metadata.versions:
            assert base.versions_by_id.get(version.version_id, version) == version


@given(COMMITS)
def test_commit_is_a_function_of_its_arguments(commit: Commit) -> None:
    before = commit[0].to_json()

    first, second = committed(commit), committed(commit)

    assert (first and first.to_json()) == (second and second.to_json())
    assert commit[0].to_json() == before


@given(COMMITS)
def test_finishing_twice_gives_the_same(commit: Commit) -> None:
    base, updates = commit
    try:
        draft = apply_view_updates(base, updates, START_MS)
        first = draft.finish()
    except BadRequest:
        return

    assert draft.finish() == first


@given(views())
def test_view_can_be_made_anew_from_its_own_parts(base: ViewMetadata) -> None:
    version = base.current_version
    schema = next(item for item in base.schemas if item.schema_id == version.schema_id)

    metadata = new_view_metadata(
        schema=schema,
        version=version,
        location=Location(base.location),
        properties=base.properties,
        uuid=TableUuid("b6b1f3ac-2e1c-4a55-8a0b-6c1d2f3e4a5b"),
        now_ms=START_MS,
    )

    assert read_view_metadata(metadata.to_json()) == metadata
    assert metadata.schemas == (schema.with_id(0),)
    assert metadata.current_version == version.replace(schema_id=0)
    assert [entry.version_id for entry in metadata.version_log] == [version.version_id]
