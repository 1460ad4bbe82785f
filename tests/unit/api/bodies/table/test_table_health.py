"""The commands in findings: a shell takes them as they stand, and so does Spark SQL."""

from __future__ import annotations

import json
import shlex

import pytest

from app.api.bodies.table.table_health import warehouse_health_json
from app.catalog.upkeep.warehouse_health import UnreadableTable
from app.cli.health_lines import waiting_line
from app.cli.terminal.arguments import identifier_from
from app.database.deletions.file_deletions import WaitingDeletion
from app.engine.health.findings import HealthFinding, Severity
from app.engine.model.identifiers import Namespace, TableIdentifier


@pytest.mark.parametrize(
    "pieces",
    [("eu", "sales", "orders"), ("eu.west", "orders"), ("a b", "it's"), ("a", "$HOME"), ("a.b/c", "x:y")],
)
def test_commands_name_their_table(pieces: tuple[str, ...]) -> None:
    identifier = TableIdentifier(Namespace(pieces[:-1]), pieces[-1])
    finding = HealthFinding("x", Severity.INFO, "Something.", "icetower table expire {table}")

    answer = json.loads(warehouse_health_json([UnreadableTable(identifier, [finding])], "lake", None))

    words = shlex.split(answer["tables"][0]["findings"][0]["command"])
    assert words[:3] == ["icetower", "table", "expire"]
    # Another warehouse may have a table of the same name.
    assert words[-2:] == ["--warehouse", "lake"]
    separator = words[5] if len(words) > 6 else "."
    assert identifier_from(words[3], separator) == identifier


def test_deletions_that_wait_are_shown_with_when_they_are_tried_again() -> None:
    waiting = [
        WaitingDeletion("expire", "eu.orders", 3, 7, 9, is_given_up=False, error="E1"),
        WaitingDeletion("purge", "eu.old", 1, 8, 9, is_given_up=True, error="E2"),
    ]

    assert json.loads(warehouse_health_json([], "lake", None, waiting))["waiting-deletions"] == [
        {
            "kind": "expire",
            "table": "eu.orders",
            "attempts": 3,
            "queued-ms": 7,
            "next-attempt-ms": 9,
            "error": "E1",
        },
        {"kind": "purge", "table": "eu.old", "attempts": 1, "queued-ms": 8, "error": "E2"},
    ]
    assert waiting_line({"kind": "expire", "table": "eu.orders", "queued-ms": 7, "error": "E1"}) == (
        "Files of eu.orders wait to be deleted (expire, since 1970-01-01 00:00:00 UTC, it is not tried again): E1"
    )
    assert "waiting-deletions" not in json.loads(warehouse_health_json([], "lake", None))


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

    answer = json.loads(warehouse_health_json([UnreadableTable(identifier, [finding])], "lake", None))

    assert answer["tables"][0]["findings"][0]["command"] == expected
