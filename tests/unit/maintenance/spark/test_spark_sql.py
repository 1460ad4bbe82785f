from __future__ import annotations

from app.engine.model.identifiers import Namespace, TableIdentifier
from app.maintenance.spark.spark_sql import ProcedureCall, expression, qualified


def test_call_names_the_table_with_its_catalog() -> None:
    """So that a namespace of the name of another catalog is not taken for that one."""
    table = TableIdentifier(Namespace(("a.b", "c")), "d`e's")
    call = ProcedureCall("p", {"where": "x = 'y'", "options": {"k": "v", "l": "w"}, "version": 3})

    assert qualified("cat", table, "files") == "`cat`.`a.b`.`c`.`d``e's`.`files`"
    assert call.sql("cat", table) == (
        "CALL `cat`.system.p(table => '`cat`.`a.b`.`c`.`d``e\\'s`', where => 'x = \\'y\\'',"
        " options => map('k', 'v', 'l', 'w'), version => 3)"
    )


def test_empty_map() -> None:
    assert expression({}) == "map()"


def test_partial_progress_is_seen() -> None:
    assert ProcedureCall("p", {"options": {"partial-progress.enabled": "true"}}).has_partial_progress
    assert not ProcedureCall("p", {"options": {"min-input-files": "2"}}).has_partial_progress
    assert not ProcedureCall("p").has_partial_progress
