"""Views: new ones, and commits to them; the rest is in `app.catalog.named`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile

from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.commits.intentions import Base, Intention, Planned
from app.catalog.commits.landed_before import last_events
from app.catalog.commits.landing import land_one
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import VIEWS, LoadedView
from app.catalog.named import NewNamed
from app.engine.change.edits.snapshots import CLOCK_LEAD_MS
from app.engine.change.numbering import LAST_ADDED
from app.engine.change.requirements import Requirement, check_view_requirements
from app.engine.change.updates import AddSchema, AddViewVersion, SetCurrentViewVersion, Update
from app.engine.change.view_apply import apply_view_updates, new_view_metadata
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, SchemaId, TableUuid
from app.engine.model.schema import Schema
from app.engine.model.view_metadata import ViewMetadata, ViewVersion
from app.errors import CommitStateUnknown, IcetowerError, InvalidMetadata, MetadataFileMissing
from app.fileio.wanted import check_wanted


@dataclass(frozen=True)
class NewView(NewNamed[ViewMetadata]):
    """A new view, as a client describes it."""

    identifier: TableIdentifier
    schema: Schema
    version: ViewVersion
    location: str | None
    properties: Mapping[str, str]
    kind = VIEWS

    def first_metadata(self, location: Location, uuid: TableUuid, now_ms: int) -> ViewMetadata:
        """Return the metadata of a view with one version."""
        return new_view_metadata(
            schema=self.schema,
            version=self.version,
            location=location,
            properties=self.properties,
            uuid=uuid,
            now_ms=now_ms,
        )


@dataclass(frozen=True)
class ViewCommit(Intention[ViewMetadata, None]):
    """A commit to one view."""

    identifier: TableIdentifier
    requirements: Sequence[Requirement]
    updates: Sequence[Update]
    kind = VIEWS

    def lands_with_others(self) -> bool:
        """Say yes: its answer is the view."""
        return True

    def require(self, base: Base[ViewMetadata]) -> bool:
        """Check every requirement; False if this very commit has landed already."""
        check_view_requirements(base.present(), self.requirements)
        return not _is_repeated(base.present(), self.updates)

    def apply(
        self, catalog: Catalog, base: Base[ViewMetadata], _files: StagedFiles
    ) -> Planned[ViewMetadata, None]:
        """Apply every update."""
        _check_never_landed(catalog, base, self.updates)
        draft = apply_view_updates(base.present(), self.updates, catalog.now_ms(), _go_on_if_wanted)
        return Planned(draft.finish() if draft.has_changes else None, None)


def _go_on_if_wanted(_position: int, _error: IcetowerError | None) -> bool:
    check_wanted()
    return True


def _is_repeated(view: ViewMetadata, updates: Sequence[Update]) -> bool:
    """Return whether a commit has landed already: a client or a proxy sent the request again.

    Two versions of one query, of one time to the millisecond, come from one request. If another version has become
    current since, the request must not take it back.

    Raises:
        CommitStateUnknown: the view has its versions, and has gone on from them.
    """
    if not any(isinstance(update, AddViewVersion) for update in updates):
        return False
    stored = {(version.meaning, version.timestamp_ms): version.version_id for version in view.versions}
    by_id = {version.version_id: version.meaning for version in view.versions}
    for entry in view.version_log:
        # A query that the view had before keeps its version, with its time: that of the request is in the log.
        if entry.version_id in by_id:
            stored[by_id[entry.version_id], entry.timestamp_ms] = entry.version_id
    schemas = {schema.meaning: schema.schema_id for schema in view.schemas}
    schema_id, version_id, current_id = SchemaId(LAST_ADDED), LAST_ADDED, view.current_version_id
    others: list[Update] = []
    for update in updates:
        match update:
            case AddSchema(schema_=schema):
                schema_id = schemas.get(schema.meaning, SchemaId(LAST_ADDED))
            case AddViewVersion(view_version=sent):
                meant = sent.replace(schema_id=schema_id) if sent.schema_id == LAST_ADDED else sent
                found = stored.get((meant.meaning, meant.timestamp_ms))
                if found is None:
                    return False
                version_id = found
            case SetCurrentViewVersion(view_version_id=named):
                current_id = version_id if named == LAST_ADDED else named
            case _:
                others.append(update)
    if current_id != view.current_version_id:
        if all(entry.version_id != current_id for entry in view.version_log):
            return False
        raise CommitStateUnknown(
            f"This commit has landed before: version {current_id} of the view, of the same timestamp-ms, was current, "
            f"and {view.current_version_id} is now. Nothing was changed; set-current-view-version alone brings it back"
        )
    draft = apply_view_updates(view, others, view.current_version.timestamp_ms)
    return draft.properties == view.properties and draft.location == view.location


def _check_never_landed(catalog: Catalog, base: Base[ViewMetadata], updates: Sequence[Update]) -> None:
    """Check that a commit has not landed in a version that the view keeps no more.

    Only a version that is no younger than the youngest is looked for, in the states since it could first land.

    Raises:
        CommitStateUnknown: it has.
        FilesUnavailable: an earlier state cannot be read now.
    """
    view, seen = base.present(), base.seen
    sent_ms = [item.view_version.timestamp_ms for item in updates if isinstance(item, AddViewVersion)]
    has_lost_versions = max(version.version_id for version in view.versions) > len(view.versions)
    if seen is None or not sent_ms or not has_lost_versions:
        return
    kept_ms = [view.current_version.timestamp_ms, *(entry.timestamp_ms for entry in view.version_log)]
    if min(sent_ms) > max(kept_ms):
        return
    since_ms = min(sent_ms) - CLOCK_LEAD_MS
    for event in takewhile(lambda event: event.at_ms >= since_ms, last_events(catalog, seen.id)):
        check_wanted()
        if event.location is None or event.location in (event.previous_location, seen.metadata_location):
            continue
        with suppress(MetadataFileMissing, InvalidMetadata):
            if _was_in(catalog.read_file(VIEWS, event.location, seen.uuid), updates):
                raise CommitStateUnknown(
                    f"This commit to {base.identifier} has landed before, and the view has gone on since: its version "
                    "has left the history. Nothing was changed; as a new version, with its own timestamp-ms, it lands"
                )


def _was_in(state: ViewMetadata, updates: Sequence[Update]) -> bool:
    try:
        return _is_repeated(state, updates)
    except CommitStateUnknown:
        return True


def replace_view(
    catalog: Catalog,
    identifier: TableIdentifier,
    requirements: Sequence[Requirement],
    updates: Sequence[Update],
) -> LoadedView:
    """Advance a view by one commit.

    Raises:
        NoSuchView: no view has this name.
        RequirementFailed: it is not the view the client means.
        InvalidUpdate: an update cannot be applied.
        InvalidViewVersion: one dialect has two queries.
        InvalidLocation: an update moves the view out of its warehouse.
        PointerMoved: other commits won every attempt.
        CommitStateUnknown: the database did not answer; the new file stays. Or it has landed before, and the view has
            gone on.
    """
    catalog.permit("replace_view", identifier)
    return land_one(catalog, ViewCommit(identifier, requirements, updates)).loaded
