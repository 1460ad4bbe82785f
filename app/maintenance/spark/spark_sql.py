"""Spark SQL as text: names of tables, and calls of Iceberg's procedures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.engine.model.identifiers import TableIdentifier
from app.engine.upkeep.sql_text import literal, quoted

Argument = str | int | Mapping[str, str]
"""A value of a procedure's argument; a mapping becomes Spark's `map(...)`."""


@dataclass(frozen=True, slots=True)
class ProcedureCall:
    """A call of one of Iceberg's procedures for one table."""

    procedure: str
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    """By name, without the table."""

    @property
    def has_partial_progress(self) -> bool:
        """Whether parts of the work are committed one by one, so that some may fail."""
        options = self.arguments.get("options")
        return isinstance(options, Mapping) and options.get("partial-progress.enabled") == "true"

    def sql(self, catalog: str, table: TableIdentifier) -> str:
        """Return the statement; the table is in the catalog whose procedure is called."""
        given = {"table": qualified(catalog, table), **self.arguments}
        listed = ", ".join(f"{name} => {expression(value)}" for name, value in given.items())
        return f"CALL {quoted(catalog)}.system.{self.procedure}({listed})"


def qualified(catalog: str, table: TableIdentifier, *more: str) -> str:
    """Return the name of a table, or of one of its metadata tables."""
    return ".".join(quoted(part) for part in (catalog, *table.namespace.levels, table.name, *more))


def expression(value: Argument) -> str:
    """Return a value as SQL."""
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, int):
        return str(value)
    return f"map({', '.join(literal(text) for pair in value.items() for text in pair)})"
