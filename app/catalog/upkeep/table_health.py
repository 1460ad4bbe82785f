"""How healthy a table is: facts from metadata, manifests and commits."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.context.places.file_names import mark_of
from app.catalog.context.places.locations import is_allowed
from app.catalog.exports.forks import find_fork
from app.catalog.filesystem_tables.forks import later_versions
from app.catalog.history import snapshot_named
from app.catalog.manifests.table_manifests import TableManifests
from app.catalog.upkeep.counted_files import count_files
from app.database.pointers.pointer import Pointer
from app.engine.health.facts import MOST_WAITING, ActivityFacts, FileFacts, HealthFacts, ManifestFacts
from app.engine.health.file_facts import file_facts
from app.engine.health.findings import HealthFinding, about_snapshot, findings
from app.engine.health.manifest_facts import manifest_facts
from app.engine.health.metadata_facts import metadata_facts, small_below, summary_totals, target_file_bytes
from app.engine.model.files.manifests import ManifestFile
from app.engine.model.files.partition_values import PartitionValues
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.jobs import JobState
from app.engine.model.refs import MAIN_BRANCH
from app.engine.model.snapshot import Snapshot
from app.engine.model.table_metadata import TableMetadata
from app.engine.properties.own_properties import DAY_MS
from app.errors import CorruptMetadata, CorruptTable, FileMissing
from app.formats.metadata.own_names import own_version
from app.formats.metadata.version_names import version_in
from app.tree_errors import TreeRefusal

_EVENTS: Final = 1_000
_JOBS: Final = 100
_MOST_COMMITS_LOOKED_THROUGH: Final = 10_000
"""Looking for commits of others takes about 12 µs for each metadata file on a local disk."""
_WEEK_MS: Final = 7 * DAY_MS
_BYTES_OF_FACTS: Final = 20_000
_BYTES_OF_A_SIZE: Final = 120
OVERVIEW_BYTES: Final = 4_000
"""What the facts of one table take in the overview of a warehouse."""


@dataclass(frozen=True, slots=True)
class TableHealth:
    """The facts about a table, what they mean, and how to show its partitions."""

    identifier: TableIdentifier
    facts: HealthFacts
    findings: Sequence[HealthFinding]
    partitions: PartitionValues


def table_health(catalog: Catalog, identifier: TableIdentifier, wanted: str | None = None) -> TableHealth:
    """Return how healthy a table is, with a look at every manifest of a snapshot.

    What was counted is kept by manifest, and as a whole by metadata file.

    Args:
        catalog: the warehouse, for one caller.
        identifier: the table.
        wanted: a snapshot's id, a branch or a tag; None for the current snapshot.

    Raises:
        NoSuchTable: no table has this name.
        NoSuchSnapshot: the table does not have it.
        MetadataFileMissing, CorruptMetadata, InvalidLocation, FilesUnavailable: the metadata cannot be read, or the
            store does not answer. A manifest list or a manifest that is damaged or gone is a finding.
        DatabaseUnavailable: the database does not answer.
    """
    catalog.permit("table_health", identifier)
    pointer, metadata = catalog.read_now(TABLES, identifier)
    snapshot = metadata.current_snapshot if wanted is None else snapshot_named(metadata, wanted)
    unreadable: str | None = None
    files: FileFacts | None
    try:
        files, manifests = _counted(catalog, pointer, metadata, snapshot)
    except (CorruptMetadata, FileMissing) as error:
        files, manifests = None, manifest_facts(metadata, _readable_list(catalog, metadata, snapshot))
        unreadable = None if metadata.is_encrypted else str(error)
    facts = HealthFacts(
        looked_at_ms=catalog.now_ms(),
        snapshot_id=None if snapshot is None else snapshot.snapshot_id,
        metadata=metadata_facts(metadata, snapshot, metadata_bytes(catalog, pointer)),
        manifests=manifests,
        totals=summary_totals(snapshot),
        files=files,
        activity=_activity(catalog, pointer),
        unreadable=unreadable,
        forks=forks_of(catalog, pointer, metadata) or _fork_beside(catalog, pointer, metadata),
        waiting_deletions=_waiting_deletions(catalog, pointer),
    )
    if wanted is None:
        _keep_forks(catalog, pointer, facts.forks)
    found = findings(facts, catalog.rules.health_thresholds)
    ref = None if wanted is None else metadata.snapshot_refs.get(wanted)
    branch = wanted if ref is not None and ref.is_branch else None
    if snapshot is not None and branch != MAIN_BRANCH and (branch or snapshot != metadata.current_snapshot):
        found = [about_snapshot(each, snapshot.snapshot_id, branch) for each in found]
    return TableHealth(identifier, facts, found, PartitionValues(metadata))


def listed_manifests(
    catalog: Catalog, metadata: TableMetadata, snapshot: Snapshot | None
) -> Sequence[ManifestFile]:
    """Return the manifests of a snapshot; none if the table is encrypted and its list as well.

    Raises:
        CorruptMetadata, InvalidLocation, FileMissing, FilesUnavailable: the manifest list cannot be read.
    """
    try:
        return () if snapshot is None else TableManifests(catalog, metadata).manifests(snapshot)
    except CorruptMetadata:
        if metadata.is_encrypted:
            return ()
        raise


def _readable_list(
    catalog: Catalog, metadata: TableMetadata, snapshot: Snapshot | None
) -> Sequence[ManifestFile]:
    try:
        return listed_manifests(catalog, metadata, snapshot)
    except (CorruptMetadata, FileMissing):
        return ()


def flaw_of_specs(metadata: TableMetadata, manifests: Sequence[ManifestFile]) -> str | None:
    """Return which manifest has a partition spec that the table has not; None if there is none.

    Engines fail where they do not find it.
    """
    known = {spec.spec_id for spec in metadata.partition_specs}
    for manifest in manifests:
        if manifest.partition_spec_id not in known and manifest.may_have_live_files:
            return (
                f"manifest {manifest.manifest_path} has partition spec {manifest.partition_spec_id}, which the table "
                "has not"
            )
    return None


def overview_key(catalog: Catalog, pointer: Pointer) -> Hashable:
    """Return the key of the facts that the overview of a warehouse keeps of a table."""
    return catalog.files, pointer.id, pointer.metadata_location, pointer.registration


def _keep_forks(catalog: Catalog, pointer: Pointer, forks: tuple[str, ...]) -> None:
    """Let the overview of the warehouse show which forks were found just now."""
    kept = catalog.server.table_overviews
    facts = kept.find(overview_key(catalog, pointer))
    if facts is not None and facts.forks != forks:
        kept.put(overview_key(catalog, pointer), replace(facts, forks=forks), OVERVIEW_BYTES)


def metadata_bytes(catalog: Catalog, pointer: Pointer) -> int:
    """Return how many bytes a client reads when it loads a table.

    Raises:
        MetadataFileMissing, InvalidMetadata, FilesUnavailable: the metadata file is gone, or cannot be read.
    """
    kept = catalog.server.metadata_files
    found = kept.table_json(catalog.files, pointer.metadata_location, pointer.uuid, pointer.registration)
    return len(found.content)


def forks_of(catalog: Catalog, pointer: Pointer, metadata: TableMetadata) -> tuple[str, ...]:
    """Return the versions that follow the one which the table was adopted from, if it was.

    Raises:
        FilesUnavailable: the folder cannot be read.
        DatabaseUnavailable: the database does not answer.
    """
    if not catalog.has_rows:
        return ()
    logged = (entry.metadata_file for entry in reversed(metadata.metadata_log))
    known = (location for location in (pointer.metadata_location, *logged) if version_in(location))
    adopted = next(known, None)
    if adopted is None:
        events = catalog.pointers.history(pointer.id, None, _EVENTS)
        brought = (event.location for event in events if event.event in ("registered", "replaced"))
        adopted = next((location for location in brought if location and version_in(location)), None)
    if adopted is None or not is_allowed(catalog, adopted):
        return ()
    try:
        return tuple(later_versions(catalog.files, adopted))
    except TreeRefusal:  # no store that has file-system tables
        return ()


def _fork_beside(catalog: Catalog, pointer: Pointer, metadata: TableMetadata) -> tuple[str, ...]:
    """Return a commit that lies beside the table's and that it does not have, if there is one.

    Where very many files have to be listed for that, only deletions look.
    """
    commits = own_version(pointer.metadata_location, mark_of(catalog.server)) or 0
    if pointer.is_read_only or commits > _MOST_COMMITS_LOOKED_THROUGH:
        return ()  # The source of a read-only table goes on, as it should.
    fork = find_fork(catalog, pointer.uuid, pointer.id, pointer.metadata_location, metadata)
    return () if fork is None else (fork,)


def _counted(
    catalog: Catalog, pointer: Pointer, metadata: TableMetadata, snapshot: Snapshot | None
) -> tuple[FileFacts, ManifestFacts]:
    """Return the facts about a snapshot's files and manifests; they are kept by metadata file."""

    def count() -> tuple[tuple[FileFacts, ManifestFacts], int]:
        source = TableManifests(catalog, metadata)
        manifests: Sequence[ManifestFile] = () if snapshot is None else source.manifests(snapshot)
        flaw = flaw_of_specs(metadata, manifests)
        if flaw is not None:
            raise CorruptTable(metadata.location, flaw)
        summary = count_files(catalog, source, manifests, small_below(target_file_bytes(metadata.properties)))
        facts = file_facts(metadata, summary), manifest_facts(metadata, manifests)
        return facts, _BYTES_OF_FACTS + _BYTES_OF_A_SIZE * (
            len(summary.sizes) + len(summary.position_delete_sizes)
        )

    snapshot_id = None if snapshot is None else snapshot.snapshot_id
    key: Hashable = (catalog.files, pointer.id, pointer.metadata_location, pointer.registration, snapshot_id)
    return catalog.server.counted_files.find_or_read(key, count)


def _waiting_deletions(catalog: Catalog, pointer: Pointer) -> tuple[str, ...]:
    if not catalog.has_rows:
        return ()
    found = catalog.server.file_deletions.waiting(catalog.warehouse.id, MOST_WAITING, pointer.uuid)
    return tuple(deletion.error for deletion in found if not deletion.is_given_up)


def _activity(catalog: Catalog, pointer: Pointer) -> ActivityFacts:
    now_ms = catalog.now_ms()
    events = catalog.shown_pointers.history(pointer.id, None, _EVENTS)
    moments = [
        event.at_ms
        for event in events
        if event.location is not None and event.location != event.previous_location
    ]
    week = [moment for moment in moments if moment > now_ms - _WEEK_MS]
    # If even the oldest event that was read is of this week, there may be more of them.
    span_ms = now_ms - week[-1] if len(week) == _EVENTS else _WEEK_MS
    if events and events[-1].previous_location is None:  # made since: a younger table had less time
        span_ms = min(span_ms, max(DAY_MS, now_ms - events[-1].at_ms))
    traffic = catalog.server.traffic.of((catalog.warehouse.name, pointer.identifier))
    counts = traffic.counts
    attempts = counts.landed + counts.refused + counts.races_lost
    return ActivityFacts(
        commits_a_day=len(week) * DAY_MS / max(1, span_ms),
        attempts_a_commit=attempts / counts.landed if counts.landed else None,
        attempts_since_ms=traffic.since_ms if counts.landed else None,
        last_read_ms=catalog.server.last_reads.find(pointer.id),
        last_upkeep_ms=_last_upkeep_ms(catalog, pointer),
    )


def _last_upkeep_ms(catalog: Catalog, pointer: Pointer) -> int | None:
    jobs = catalog.server.maintenance_jobs.list(pointer.id, _JOBS) if catalog.has_rows else []
    return next((job.ended_ms for job in jobs if job.state is JobState.DONE), None)
