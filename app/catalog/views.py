"""Views: new ones, and commits to them; the rest is in `app.catalog.named`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.catalog.commits.files.staged_files import StagedFiles
from app.catalog.commits.intentions import Base, Intention, Planned
from app.catalog.commits.landing import land_one
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import VIEWS, LoadedView
from app.catalog.named import NewNamed
from app.engine.change.requirements import Requirement, check_view_requirements
from app.engine.change.updates import Update
from app.engine.change.view_apply import apply_view_updates, new_view_metadata
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location, TableUuid
from app.engine.model.schema import Schema
from app.engine.model.view_metadata import ViewMetadata, ViewVersion
from app.errors import IcetowerError
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
        """Check every requirement."""
        check_view_requirements(base.present(), self.requirements)
        return True

    def apply(
        self, catalog: Catalog, base: Base[ViewMetadata], _files: StagedFiles
    ) -> Planned[ViewMetadata, None]:
        """Apply every update."""
        draft = apply_view_updates(base.present(), self.updates, catalog.now_ms(), _go_on_if_wanted)
        return Planned(draft.finish() if draft.has_changes else None, None)


def _go_on_if_wanted(_position: int, _error: IcetowerError | None) -> bool:
    check_wanted()
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
        CommitStateUnknown: the database did not answer; the new file stays.
    """
    catalog.permit("replace_view", identifier)
    return land_one(catalog, ViewCommit(identifier, requirements, updates)).loaded
