"""Jobs that move data: planned from their options, run by Spark, and verified."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Final

from app.client.catalog import RemoteCatalog
from app.client.http.failures import CallFailed
from app.engine.model.jobs import Job, JobState
from app.engine.upkeep.sql_text import literal
from app.maintenance.assignments import Assignment, Ending
from app.maintenance.job_commits import JobTraces, snapshots_of, traces_of
from app.maintenance.patience import patiently
from app.maintenance.rewrite_data_files import REWRITE_DATA_FILES
from app.maintenance.rewrite_position_deletes import REWRITE_POSITION_DELETES
from app.maintenance.spark.mounted_catalogs import MountedTable, mounted, rest_properties
from app.maintenance.spark.procedures import Figures, JobRefused, Procedure
from app.maintenance.spark.spark_failures import SparkFailure, attempted
from app.maintenance.spark.spark_runtime import SparkMissing
from app.maintenance.spark.spark_sessions import SqlSession
from app.maintenance.spark.spark_sql import ProcedureCall
from app.maintenance.table_statistics import TABLE_STATISTICS
from app.maintenance.verification import Verification, changed_rows

PROCEDURES: Final[Mapping[Job, Procedure]] = {
    Job.REWRITE_DATA_FILES: REWRITE_DATA_FILES,
    Job.REWRITE_POSITION_DELETES: REWRITE_POSITION_DELETES,
    Job.TABLE_STATISTICS: TABLE_STATISTICS,
}


_OF_CATALOG: Final = "catalog."


def settings_apart(settings: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return settings of Spark, and those of catalogs, which begin with `catalog.`."""
    of_catalog = {
        key.removeprefix(_OF_CATALOG): value for key, value in settings.items() if key.startswith(_OF_CATALOG)
    }
    return {key: value for key, value in settings.items() if not key.startswith(_OF_CATALOG)}, of_catalog


class SparkJobs:
    """Has Spark do them, each through a catalog of its own that names the job in every request."""

    def __init__(
        self,
        open_session: Callable[[], SqlSession],
        uri: str,
        warehouse: str | None = None,
        *,
        verify: Verification = Verification.COUNTS,
        confs: Mapping[str, str] | None = None,
    ) -> None:
        """Make a worker.

        Args:
            open_session: returns a session for one job, as `SparkSessions.open` does.
            uri: the catalog's address.
            warehouse: the warehouse; the server's own if None.
            verify: how much is read to find out whether rows have changed.
            confs: more properties of Iceberg's REST catalog in Spark, as `uri` where Spark has to take another way.
        """
        self._open_session = open_session
        self._uri = uri
        self._warehouse = warehouse
        self._verify = verify
        self._properties = rest_properties(uri, warehouse, confs or {})

    def carry_out(self, assignment: Assignment) -> Ending:
        """Do the job, and return what became of it."""
        procedure = PROCEDURES[assignment.job]
        try:
            call = procedure.plan(assignment)
        except JobRefused as refused:
            return Ending(JobState.REFUSED, str(refused))
        ending = attempted(lambda: self._carry_out(procedure, call, assignment))
        if isinstance(ending, SparkFailure):
            return Ending(JobState.FAILED, f"Spark did not start: {ending.message}")
        return ending

    def _carry_out(self, procedure: Procedure, call: ProcedureCall, assignment: Assignment) -> Ending:
        try:
            session = self._open_session()
        except SparkMissing as missing:
            return Ending(JobState.FAILED, str(missing))
        with mounted(session, assignment.table, assignment.job_id, self._properties) as table:
            return self._run(procedure, call, table, assignment)

    def _run(
        self, procedure: Procedure, call: ProcedureCall, table: MountedTable, assignment: Assignment
    ) -> Ending:
        try:
            with RemoteCatalog(self._uri, self._warehouse) as catalog:
                known = snapshots_of(catalog, assignment.table)
        except CallFailed as unanswered:
            return Ending(JobState.FAILED, f"Nothing was begun: {unanswered}")
        figures = attempted(lambda: procedure.run(table, call))
        table.is_lost = isinstance(figures, SparkFailure) and figures.is_connection_lost
        try:
            # Nothing is verified without, and Spark has worked for long.
            traces = patiently(lambda: self._traces(assignment, known))
        except CallFailed as unanswered:
            return _unverified(figures, unanswered)
        if not isinstance(figures, SparkFailure):
            return self._verified(procedure, call, table, traces, _ended(call, figures, traces))
        ending = _failed(procedure, figures, traces, table)
        if figures.is_connection_lost:
            return ending
        return self._verified(procedure, call, table, traces, ending)

    def _traces(self, assignment: Assignment, known: Container[int]) -> JobTraces:
        with RemoteCatalog(self._uri, self._warehouse) as catalog:
            return traces_of(catalog, assignment.table, assignment.job_id, known)

    def _verified(
        self,
        procedure: Procedure,
        call: ProcedureCall,
        table: MountedTable,
        traces: JobTraces,
        ending: Ending,
    ) -> Ending:
        unsound = [flaw for commit in traces.commits for flaw in commit.wrong_totals()]
        changed = attempted(lambda: changed_rows(table, traces.commits, self._verify))
        if isinstance(changed, SparkFailure):
            ending = ending.with_remark(f"Its rows could not be verified: {changed.message}")
        else:
            unsound += changed
        if traces.gone:
            ending = ending.with_remark(f"{len(traces.gone)} of its snapshots have expired, unverified.")
        if unsound:
            loud = f"ROWS ARE NOT WHAT THEY WERE: {'; '.join(unsound)}. Roll the table back to the parent."
            return Ending(JobState.UNSOUND, loud, ending.figures)
        no_healthier = procedure.verify(call, traces.commits)
        return ending if no_healthier is None else ending.with_remark(no_healthier)


def _ended(call: ProcedureCall, figures: Figures, traces: JobTraces) -> Ending:
    """Return how a call that was answered has ended."""
    if not traces.commits and not traces.gone and not any(figures.values()):
        if traces.has_rivals and call.has_partial_progress:
            # Spark answers the same if all of its commits fail, by 1.10's default of max-failed-commits.
            return Ending(JobState.LOST, "Nothing landed, and others changed files meanwhile.", figures)
        return Ending(JobState.NOTHING, figures=figures)
    failed = figures.get("failed-data-files-count", 0)
    if failed:
        why = f" ({traces.refusals[0]})" if traces.refusals else ""
        return Ending(
            JobState.LOST, f"{failed} data files could not be rewritten{why}; the others are.", figures
        )
    return Ending(JobState.DONE, figures=figures)


def _failed(procedure: Procedure, failure: SparkFailure, traces: JobTraces, table: MountedTable) -> Ending:
    """Return how a call that failed has ended, by what the server knows of it."""
    figures = procedure.landed(traces.commits) if traces.commits else {}
    if failure.is_connection_lost:
        return Ending(JobState.UNKNOWN, failure.message, figures, is_still_at_work=True)
    if failure.state is JobState.UNKNOWN and traces.is_settled:
        if traces.commits or traces.gone:
            return Ending(JobState.DONE, "Spark did not hear that its commit had landed.", figures)
        return Ending(JobState.FAILED, f"Its commit has not landed: {failure.message}", figures)
    if failure.state is JobState.DAMAGED and not _names(table, failure.missing_file):
        message = f"A file went while the job was running, and the table does not use it: {failure.message}"
        return Ending(JobState.FAILED, message, figures)
    state = failure.state
    if state is JobState.FAILED and (traces.commits or "partial-progress" in failure.message):
        # Iceberg logs why commits of a part failed, and does not say it.
        state = JobState.LOST
    ending = Ending(state, failure.message, figures)
    if traces.commits:
        ending = ending.with_remark(f"{len(traces.commits)} of its commits have landed.")
    return ending.with_remark(f"The server said: {traces.refusals[0]}") if traces.refusals else ending


def _names(table: MountedTable, file: str | None) -> bool:
    """Say whether the table names a file that is missing, as far as that can be found out."""
    if file is None:
        return True
    name = literal(file.rstrip(".,)").rsplit("/", 1)[-1])
    query = f"SELECT count(*) FROM {table.metadata_table('files')} WHERE endswith(file_path, {name})"
    found = attempted(lambda: table.one(query))
    # A table whose manifests cannot be read is damaged, whatever they name.
    return isinstance(found, SparkFailure) or bool(found[0])


def _unverified(figures: Figures | SparkFailure, unanswered: CallFailed) -> Ending:
    """Return how a job has ended if the server does not say what it has committed."""
    remark = f"What has landed could not be asked: {unanswered}"
    if not isinstance(figures, SparkFailure):
        return Ending(JobState.DONE, remark, figures)
    return Ending(figures.state, f"{figures.message} {remark}", is_still_at_work=figures.is_connection_lost)
