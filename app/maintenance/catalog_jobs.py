"""Jobs that move no data: the server does them on request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from app.client.catalog import RemoteCatalog
from app.client.http.failures import CallFailed, CatalogRefused
from app.engine.model.jobs import Job, JobState
from app.maintenance.assignments import Assignment, Ending


class CatalogJobs:
    """Has the server do them; each job has connections of its own, which send its id."""

    def __init__(self, open_catalog: Callable[[str], RemoteCatalog]) -> None:
        """Args: open_catalog: returns the catalog for a job's id, which each of its requests sends."""
        self._open_catalog = open_catalog

    def carry_out(self, assignment: Assignment) -> Ending:
        """Do the job, and return what became of it."""
        try:
            with self._open_catalog(assignment.job_id) as catalog:
                return _JOBS[assignment.job](catalog, assignment)
        except CatalogRefused as refused:
            return Ending(_state_of(refused), str(refused))
        except CallFailed as failure:
            # The request may have reached the server.
            return Ending(JobState.UNKNOWN, str(failure))


def _state_of(refused: CatalogRefused) -> JobState:
    if refused.status == 409:
        return JobState.LOST
    if refused.is_missing_file:
        return JobState.DAMAGED
    if refused.type == "CommitStateUnknownException" or refused.status in (502, 504):
        return JobState.UNKNOWN
    return JobState.REFUSED if refused.status in (400, 403, 406) else JobState.FAILED


def _rewrite_manifests(catalog: RemoteCatalog, assignment: Assignment) -> Ending:
    cluster_by = assignment.options.get("cluster-by")
    max_bytes = assignment.options.get("max-bytes")
    done = catalog.upkeep.rewrite_manifests(assignment.table, cluster_by=cluster_by, max_bytes=max_bytes)
    figures = {
        "rewritten-bytes": sum(group.manifest_bytes for group in done.groups),
        "manifests-replaced": done.manifests_replaced,
        "manifests-created": done.manifests_created,
        "entries-processed": done.entries_processed,
    }
    return Ending(JobState.NOTHING if done.snapshot_id is None else JobState.DONE, figures=figures)


def _remove_dangling_deletes(catalog: RemoteCatalog, assignment: Assignment) -> Ending:
    done = catalog.upkeep.remove_dangling_deletes(assignment.table)
    figures = {"delete-files-removed": done.removed_delete_files}
    return Ending(JobState.NOTHING if done.snapshot_id is None else JobState.DONE, figures=figures)


def _partition_statistics(catalog: RemoteCatalog, assignment: Assignment) -> Ending:
    done = catalog.upkeep.write_partition_statistics(assignment.table)
    return Ending(JobState.DONE, figures={"partitions": done.partitions})


def _expire_snapshots(catalog: RemoteCatalog, assignment: Assignment) -> Ending:
    done = catalog.tables.expire(assignment.table)
    figures = {"snapshots-expired": len(done.snapshots), "refs-expired": len(done.refs)}
    return Ending(JobState.NOTHING if done.is_empty else JobState.DONE, figures=figures)


def _remove_orphan_files(catalog: RemoteCatalog, assignment: Assignment) -> Ending:
    older_than_ms = assignment.options.get("older-than-ms")
    done = catalog.orphans.mark(assignment.table, dry_run=False, older_than_ms=older_than_ms)
    figures = {"orphans-marked": done.orphan_files, "orphan-bytes": done.orphan_bytes}
    return Ending(JobState.DONE if done.orphan_files else JobState.NOTHING, figures=figures)


_JOBS: Final[Mapping[Job, Callable[[RemoteCatalog, Assignment], Ending]]] = {
    Job.REMOVE_DANGLING_DELETES: _remove_dangling_deletes,
    Job.REWRITE_MANIFESTS: _rewrite_manifests,
    Job.PARTITION_STATISTICS: _partition_statistics,
    Job.EXPIRE_SNAPSHOTS: _expire_snapshots,
    Job.REMOVE_ORPHAN_FILES: _remove_orphan_files,
}
