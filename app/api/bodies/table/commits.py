"""JSON of commits to tables and views, alone and in transactions.

As in the reference's parser, lists that are not there are empty.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import Field

from app.api.bodies.identifiers import IdentifierBody
from app.api.bodies.json_body import Body, parse_body
from app.catalog.commits.rebases import RebaseRequest
from app.catalog.commits.table_commits import TableCommit
from app.engine.change.requirements import Requirement
from app.engine.change.updates import SetProperties, Update
from app.engine.model.document import FIRST_ERROR
from app.errors import InvalidRequest

Requirements = Annotated[tuple[Requirement, ...], FIRST_ERROR]
Updates = Annotated[tuple[Update, ...], FIRST_ERROR]


_MEMBERS: Final = ("table-changes", "identifier", "requirements", "updates")
"""Of each of these a parser takes the last one, so that a requirement that is given before it would not be checked."""


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


def parse_commit(raw: bytes) -> CommitBody:
    """Return the commit that the bytes of a body hold; raises `InvalidRequest`."""
    body = parse_body(CommitBody, raw)
    _check_given_once(raw, [body])
    return body


def parse_transaction(raw: bytes) -> CommitTransactionBody:
    """Return the transaction that the bytes of a body hold; raises `InvalidRequest`."""
    body = parse_body(CommitTransactionBody, raw)
    _check_given_once(raw, body.table_changes)
    return body


def _check_given_once(raw: bytes, changes: Sequence[CommitBody | TableChangeBody]) -> None:
    """Refuse a body with two members of one name.

    Only one with more names than are used is read a second time: a text may hold such a name, too.
    """
    updates = [update for change in changes for update in change.updates or ()]
    used = {
        "table-changes": 1,
        "identifier": sum(change.identifier is not None for change in changes),
        "requirements": sum(change.requirements is not None for change in changes),
        "updates": sum(change.updates is not None for change in changes)
        + sum(isinstance(update, SetProperties) for update in updates),
    }
    # `updated` is the old name of what `updates` is in `set-properties`, and escapes may be part of any name.
    has_other_names = b'"updated"' in raw or b"\\u" in raw
    if has_other_names or any(raw.count(b'"%s"' % name.encode()) > used[name] for name in _MEMBERS):
        json.loads(raw, object_pairs_hook=_without_repetition)


def _without_repetition(members: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in members]
    for name in _MEMBERS:
        if names.count(name) > 1:
            raise InvalidRequest(f"Invalid body: {name} is given twice in one object")
