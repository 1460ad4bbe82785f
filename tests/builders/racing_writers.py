"""Writers of one table that do not know of each other: each builds on the table as it was when it began."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from app.catalog.commits.intentions import Landed
from app.catalog.commits.landing import land_one
from app.catalog.commits.rebases import NOTHING_ASKED, RebaseRequest
from app.catalog.commits.table_commits import TableCommit
from app.catalog.context.catalog import Catalog
from app.engine.guard.lists import Tally, tally_of_entries
from app.engine.model.files.manifests import EntryStatus, ManifestEntry
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.table_metadata import TableMetadata
from tests.builders.derived_requirements import requirements_for
from tests.builders.tables import DEPARTURES, load_table, table_in
from tests.builders.writing_engine import Commit, WritingEngine

NUMBERS = itertools.count(100_000)
"""Of files and snapshots: no two writers may give the same."""


def rebasing_table(
    catalog: Catalog,
    mode: str = "appends",
    version: int = 2,
    identifier: TableIdentifier = DEPARTURES,
    **properties: str,
) -> None:
    """Make a table whose commits are rebased."""
    table_in(
        catalog,
        identifier,
        properties={
            "icetower.rebase": mode,
            "icetower.guard": "reject",
            "format-version": str(version),
            **properties,
        },
    )


def writer(catalog: Catalog, identifier: TableIdentifier = DEPARTURES) -> WritingEngine:
    """Return a writer that has just loaded the table."""
    return writer_on(catalog, load_table(catalog, identifier).metadata)


def writer_on(catalog: Catalog, metadata: TableMetadata) -> WritingEngine:
    """Return a writer that knows the table as it was then."""
    return WritingEngine(metadata.format_version, files=catalog.files, numbers=NUMBERS, on=metadata)


def sent(
    commit: Commit, request: RebaseRequest = NOTHING_ASKED, identifier: TableIdentifier = DEPARTURES
) -> TableCommit:
    """Return what a writer sends of a commit that it has made."""
    requirements = requirements_for(commit.base, commit.updates)
    return TableCommit(identifier, requirements, commit.updates, rebasing=request)


def commit(
    catalog: Catalog, made: Commit, request: RebaseRequest = NOTHING_ASKED
) -> Landed[TableMetadata, None]:
    """Send a commit."""
    return land_one(catalog, sent(made, request))


def live_files(catalog: Catalog, branch: str = "main") -> Mapping[str, int]:
    """Return the rows of each live data file of a branch, read from the files anew."""
    return {
        entry.file.file_path: entry.file.record_count
        for entry in _entries(catalog, branch)
        if entry.is_live and entry.file.content == 0
    }


def added_by(made: Commit, engine: WritingEngine) -> set[str]:
    """Return the files that a commit added."""
    return {
        entry.file.file_path
        for manifest in engine.manifests(made.snapshot)
        for entry in engine.source.entries(manifest)
        if entry.status is EntryStatus.ADDED and entry.snapshot_id == made.snapshot.snapshot_id
    }


def recount(catalog: Catalog, identifier: TableIdentifier = DEPARTURES, branch: str = "main") -> Tally:
    """Return what the manifests of a branch have, entry by entry."""
    return tally_of_entries(_entries(catalog, branch, identifier))


def _entries(catalog: Catalog, branch: str, identifier: TableIdentifier = DEPARTURES) -> list[ManifestEntry]:
    reader = writer(catalog, identifier)
    return [
        entry
        for manifest in reader.manifests(reader.head(branch))
        for entry in reader.source.entries(manifest)
    ]
