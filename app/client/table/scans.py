"""Calls that plan scans: a plan is requested, awaited if necessary, and read to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import orjson
from pydantic import Field

from app.client.answers import ServerAnswer
from app.client.http.failures import AnswerNotUnderstood, ScanNotPlanned
from app.client.http.http_calls import MOST_PAGES, CatalogCalls, HttpCalls
from app.client.request_parts import JsonObject
from app.engine.model.identifiers import TableIdentifier

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0


class ScanTasksAnswer(ServerAnswer):
    """Files of a scan, and the tasks that have more of them."""

    plan_tasks: list[str] = Field(default_factory=list)
    file_scan_tasks: list[JsonObject] = Field(default_factory=list)
    delete_files: list[JsonObject] = Field(default_factory=list)

    @classmethod
    def read(cls, content: bytes) -> Self:
        """Return an answer from its JSON, of which there may be megabytes; raises like its parent."""
        try:
            found = orjson.loads(content)
        except orjson.JSONDecodeError:
            return super().read(content)
        return cls.model_validate(found)


class PlanAnswer(ScanTasksAnswer):
    """A planned scan, or the state of one that is being planned."""

    status: str
    plan_id: str | None = None
    error: dict[str, Any] | None = None


@dataclass(slots=True)
class ScanFile:
    """A file to be read, with the delete files that apply to it, as the protocol has them."""

    file: JsonObject
    deletes: list[JsonObject]
    residual: Any


@dataclass
class ServerPlan:
    """A planned scan, whose files are read as they are asked for."""

    files: Iterator[ScanFile] = field(default_factory=lambda: iter(()))
    answers: int = 0
    """How many answers it took so far."""


class ScanCalls(CatalogCalls):
    """Planning of scans of one warehouse's tables."""

    def __init__(self, calls: HttpCalls, root: str, pause: Callable[[float], None] = time.sleep) -> None:
        super().__init__(calls, root)
        self._pause = pause

    def plan(
        self, identifier: TableIdentifier, request: JsonObject, timeout_seconds: float = 300.0
    ) -> ServerPlan:
        """Return a scan whose planning is done; its files raise what further answers do.

        Raises:
            ScanNotPlanned: the server gave up, or was not done in time.
        """
        table = self._below_table(identifier)
        answer = self._calls.read(PlanAnswer, "POST", f"{table}/plan", body=request)
        waited, pause = 0.0, FIRST_PAUSE_S
        plan = ServerPlan(answers=1)
        while answer.status == "submitted":
            if waited >= timeout_seconds:
                self._calls.send("DELETE", f"{table}/plan/{answer.plan_id}")
                raise ScanNotPlanned(f"The scan was not planned within {timeout_seconds:.0f} s")
            self._pause(pause)
            waited, pause = waited + pause, min(2 * pause, LONGEST_PAUSE_S)
            plan_id = answer.plan_id
            answer = self._calls.read(PlanAnswer, "GET", f"{table}/plan/{plan_id}")
            answer = answer.model_copy(update={"plan_id": plan_id})
            plan.answers += 1
        if answer.status != "completed":
            reason = (answer.error or {}).get("message", f"the plan is {answer.status}")
            raise ScanNotPlanned(f"The server could not plan the scan: {reason}")
        plan.files = self._files(table, answer, plan)
        return plan

    def _files(self, table: str, page: ScanTasksAnswer, plan: ServerPlan) -> Iterator[ScanFile]:
        """Yield the files of the first answer, and those of all tasks that it leads to."""
        yield from _files_of(page)
        left, seen = list(page.plan_tasks), set[str]()
        while left:
            task = left.pop(0)
            if task in seen or len(seen) >= MOST_PAGES:
                # To stop here would look as if these were all files.
                reason = "it sends a plan task again" if task in seen else "its plan has no end"
                raise AnswerNotUnderstood(f"{self._calls.uri}/{table}/tasks", 200, reason)
            seen.add(task)
            page = self._calls.read(ScanTasksAnswer, "POST", f"{table}/tasks", body={"plan-task": task})
            plan.answers += 1
            left += page.plan_tasks
            yield from _files_of(page)


def _files_of(page: ScanTasksAnswer) -> Iterator[ScanFile]:
    for task in page.file_scan_tasks:
        references = task.get("delete-file-references")
        deletes = [page.delete_files[place] for place in references] if references else []
        yield ScanFile(task["data-file"], deletes, task.get("residual-filter", True))
