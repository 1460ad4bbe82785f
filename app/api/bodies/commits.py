"""JSON of commits to tables and views, alone and in transactions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from app.api.bodies.identifiers import IdentifierBody
from app.api.bodies.json_body import Body
from app.catalog.commits.table_commits import TableCommit
from app.engine.change.requirements import Requirement
from app.engine.change.updates import Update
from app.engine.model.document import FIRST_ERROR

Requirements = Annotated[tuple[Requirement, ...], FIRST_ERROR]
Updates = Annotated[tuple[Update, ...], FIRST_ERROR]


class CommitTableBody(Body):
    identifier: IdentifierBody | None = None
    requirements: Requirements
    updates: Updates


class TableChangeBody(Body):
    identifier: IdentifierBody
    requirements: Requirements
    updates: Updates


class CommitTransactionBody(Body):
    table_changes: Annotated[tuple[TableChangeBody, ...], Field(min_length=1)]

    def commits(self) -> list[TableCommit]:
        """Return the commit to each table; raises `InvalidName`."""
        return [
            TableCommit(change.identifier.checked(), change.requirements, change.updates)
            for change in self.table_changes
        ]


class CommitViewBody(Body):
    identifier: IdentifierBody | None = None
    requirements: Requirements | None = None
    updates: Updates
