"""Comparing the rows of two snapshots: columns that Spark cannot hash are left out, and all others are compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from app.engine.model.identifiers import Namespace, TableIdentifier
from app.maintenance.job_commits import JobCommit
from app.maintenance.spark.mounted_catalogs import MountedTable
from app.maintenance.verification import Verification, changed_rows

COMMIT = JobCommit(2, 1, {"operation": "replace"}, {"operation": "append"})


@dataclass(frozen=True)
class Type:
    """A type, as PySpark has it."""

    text: str

    def simpleString(self) -> str:  # noqa: N802 - PySpark's name
        return self.text


@dataclass(frozen=True)
class Column:
    """A column of an answer."""

    name: str
    dataType: Type  # noqa: N815 - PySpark's name


@dataclass(frozen=True)
class Answer:
    """What a statement answers."""

    fields: list[Column]
    rows: list[tuple[int, ...]]

    @property
    def schema(self) -> Any:
        return self

    def collect(self) -> list[Any]:
        return self.rows


@dataclass
class Session:
    """A session with one table, whose snapshots have the same rows."""

    type: str
    conf: Any = None
    statements: list[str] = field(default_factory=list)

    def sql(self, statement: str, /) -> Any:
        self.statements.append(statement)
        columns = [Column("id", Type("bigint")), Column("odd", Type(self.type))]
        return Answer(columns, [(2, 17) if "xxhash64" in statement else (2,)])


@pytest.mark.parametrize(
    ("type_", "is_compared"),
    [
        ("variant", False),
        ("array<variant>", False),
        ("struct<a:bigint,b:variant>", False),
        ("map<string,bigint>", False),
        ("struct<variant:bigint>", True),
        ("string", True),
    ],
)
def test_columns_that_have_no_hash_keep_no_others_from_being_compared(
    type_: str, *, is_compared: bool
) -> None:
    session = Session(type_)
    table = MountedTable(session, "c", TableIdentifier(Namespace(("a",)), "t"))

    assert changed_rows(table, [COMMIT], Verification.CHECKSUMS) == []

    hashed = [statement for statement in session.statements if "xxhash64" in statement]
    assert len(hashed) == 2
    assert all("`id`" in statement and ("`odd`" in statement) is is_compared for statement in hashed)
