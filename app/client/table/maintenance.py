"""Calls about the upkeep of tables: plans and jobs."""

from __future__ import annotations

from collections.abc import Sequence

from app.client.answers import OpenAnswer
from app.client.http.http_calls import CatalogCalls
from app.client.request_parts import JsonObject
from app.engine.model.identifiers import TableIdentifier


class MaintenanceCalls(CatalogCalls):
    """Plans of upkeep, and jobs, of one warehouse's tables."""

    def plan(self, identifier: TableIdentifier, jobs: Sequence[str] = ()) -> JsonObject:
        """Return a table's policy, what is to be done now, and what is left and why.

        Args:
            identifier: the table.
            jobs: only these, whatever the policy says.
        """
        path = self._below_table(identifier, "maintenance")
        query = {"jobs": ",".join(jobs)} if jobs else {}
        return self._calls.read(OpenAnswer, "GET", path, query=query).model_dump()

    def jobs(self, identifier: TableIdentifier, most: int = 20) -> list[JsonObject]:
        """Return the newest jobs of a table, newest first."""
        path = self._below_table(identifier, "maintenance", "jobs")
        found: list[JsonObject] = self._calls.read(
            OpenAnswer, "GET", path, query={"pageSize": str(most)}
        ).model_dump()["jobs"]
        return found

    def begin_job(
        self,
        identifier: TableIdentifier,
        job: str,
        job_id: str,
        options: JsonObject,
        lease_ms: int,
        rewritten_bytes: int = 0,
    ) -> JsonObject:
        """Begin a job that is expected to rewrite so many bytes, and hold the table for it."""
        body = {"job": job, "id": job_id, "options": options, "lease-ms": lease_ms}
        body |= {"rewritten-bytes": rewritten_bytes} if rewritten_bytes else {}
        path = self._below_table(identifier, "maintenance", "jobs")
        return self._calls.read(OpenAnswer, "POST", path, body=body).model_dump()

    def hold_job(self, identifier: TableIdentifier, job_id: str, lease_ms: int) -> JsonObject:
        """Hold the table of a job for longer."""
        path = self._below_table(identifier, "maintenance", "jobs", job_id, "hold")
        return self._calls.read(OpenAnswer, "POST", path, body={"lease-ms": lease_ms}).model_dump()

    def end_job(
        self, identifier: TableIdentifier, job_id: str, state: str, outcome: JsonObject
    ) -> JsonObject:
        """Note what became of a job, and let its table go."""
        path = self._below_table(identifier, "maintenance", "jobs", job_id, "end")
        body = {"state": state, "outcome": outcome}
        return self._calls.read(OpenAnswer, "POST", path, body=body).model_dump()
