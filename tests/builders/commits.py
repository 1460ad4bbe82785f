"""Commits to tables without HTTP."""

from __future__ import annotations

from collections.abc import Sequence

from app.catalog.commits.landing import land_one
from app.catalog.commits.rebases import NOTHING_ASKED, RebaseRequest
from app.catalog.commits.table_commits import TableCommit
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import LoadedTable
from app.engine.change.requirements import Requirement
from app.engine.change.updates import Update
from app.engine.model.identifiers import TableIdentifier


def commit_table(
    catalog: Catalog,
    identifier: TableIdentifier,
    requirements: Sequence[Requirement],
    updates: Sequence[Update],
    rebasing: RebaseRequest = NOTHING_ASKED,
) -> LoadedTable:
    """Advance a table by one commit, or create it if the only requirement is `assert-create`."""
    return land_one(catalog, TableCommit(identifier, requirements, updates, rebasing=rebasing)).loaded
