"""JSON of commits to tables and views, alone and in transactions.

As in the reference's parser, lists that are not there are empty.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from app.api.bodies.identifiers import IdentifierBody
from app.api.bodies.json_body import Body
from app.catalog.commits.rebases import RebaseRequest
from app.catalog.commits.table_commits import TableCommit
from app.engine.change.requirements import Requirement
from app.engine.change.updates import Update
from app.engine.model.document import FIRST_ERROR

Requirements = Annotated[tuple[Requirement, ...], FIRST_ERROR]
Updates = Annotated[tuple[Update, ...], FIRST_ERROR]


class CommitBody(Body):
    identifier: IdentifierBody | None = None
    requirements: Requirements | None = None
    updates: Updates | None = None


class TableChangeBody(Body):
    identifier: IdentifierBody
    requirements: Requirements | None = None
    updates: Updates | None = None


class CommitTransactionBody(Body):
    table_changes: Annotated[tuple[TableChangeBody, ...], Field(min_length=1)]

    def commits(self, rebasing: RebaseRequest) -> list[TableCommit]:
        """Return the commit to each table; raises `InvalidName`."""
        return [
            TableCommit(
                change.identifier.checked(),
                change.requirements or (),
                change.updates or (),
                rebasing=rebasing,
            )
            for change in self.table_changes
        ]
