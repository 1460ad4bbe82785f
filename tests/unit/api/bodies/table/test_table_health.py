"""The commands in findings: a shell takes them as they stand, and so does Spark SQL."""

from __future__ import annotations

import json
import shlex

import pytest

from app.api.bodies.table.table_health import warehouse_health_json
from app.catalog.upkeep.warehouse_health import UnreadableTable
from app.cli.terminal.arguments import identifier_from
from app.engine.health.findings import HealthFinding, Severity
from app.engine.model.identifiers import Namespace, TableIdentifier


@pytest.mark.parametrize(
    "pieces",
    [("eu", "sales", "orders"), ("eu.west", "orders"), ("a b", "it's"), ("a", "$HOME"), ("a.b/c", "x:y")],
)
def test_commands_name_their_table(pieces: tuple[str, ...]) -> None:
    identifier = TableIdentifier(Namespace(pieces[:-1]), pieces[-1])
    finding = HealthFinding("x", Severity.INFO, "Something.", "icetower table expire {table}")

    answer = json.loads(warehouse_health_json([UnreadableTable(identifier, [finding])], None))

    words = shlex.split(answer["tables"][0]["findings"][0]["command"])
    assert words[:3] == ["icetower", "table", "expire"]
    separator = words[5] if len(words) > 4 else "."
    assert identifier_from(words[3], separator) == identifier


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("ALTER TABLE {sql} SET", "ALTER TABLE eu.`it's`.orders SET"),
        ("CALL p(table => {literal})", "CALL p(table => 'eu.`it\\'s`.orders')"),
    ],
)
def test_commands_in_sql_name_their_table(command: str, expected: str) -> None:
    identifier = TableIdentifier(Namespace(("eu", "it's")), "orders")
    finding = HealthFinding("x", Severity.INFO, "Something.", command)

    answer = json.loads(warehouse_health_json([UnreadableTable(identifier, [finding])], None))

    assert answer["tables"][0]["findings"][0]["command"] == expected
