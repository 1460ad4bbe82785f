"""`icetower table validate` and `validate-together` against a real server, and what a lost race looks like."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.cli.tables.conflict_lines import conflict_lines
from tests.unit.cli.conftest import Icetower

FINE = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"owner": "ada"}}]}
STALE = {
    "requirements": [
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
        {"type": "assert-current-schema-id", "current-schema-id": 0},
    ],
    "updates": [
        {"action": "set-snapshot-ref", "ref-name": "x", "type": "tag", "snapshot-id": 5},
        {"action": "set-properties", "updates": {"owner": "ada"}},
    ],
}


def written(folder: Path, body: object) -> str:
    (folder / "commit.json").write_text(body if isinstance(body, str) else json.dumps(body))
    return "commit.json"


def spaced(text: str) -> str:
    return " ".join(text.split())


def test_commit_that_would_land_is_told_with_what_it_changes(
    icetower: Icetower, folder: Path, table: str
) -> None:
    told = icetower("table", "validate", table, written(folder, FINE))
    shown = icetower("table", "show", table)

    assert (told.status, told.err) == (0, "")
    assert told.out.startswith(f"Table {table}: would commit.\n")
    assert "set properties applied" in spaced(told.out)
    assert "would change: properties owner: – → ada" in spaced(told.out)
    assert "owner" not in shown.out


def test_commit_that_would_be_refused_is_told_in_plain_words(
    icetower: Icetower, folder: Path, table: str
) -> None:
    told = icetower("table", "validate", table, written(folder, STALE))

    lines = [" ".join(line.split()) for line in told.out.splitlines()]
    assert told.status == 3
    assert lines[0] == (
        f"Table {table}: would be refused: Requirement failed: branch main was created concurrently "
        "(CommitFailedException, HTTP status 409)"
    )
    assert lines[1] == "ref snapshot id of main: expected nothing, found 77."
    assert lines[2] == "Since the commit was prepared, 1 snapshot landed, newest first:"
    assert lines[3].startswith("77 ")
    assert lines[3].endswith(" append")
    assert "ref snapshot id of main FAILED nothing 77" in lines
    assert "current schema id passed 0 0" in lines
    assert "set snapshot ref REFUSED Cannot set x to unknown snapshot: 5" in lines
    assert "set properties applied" in lines


def test_new_snapshots_are_told_with_what_they_collide_with(
    icetower: Icetower, folder: Path, table: str
) -> None:
    snapshot = {
        "snapshot-id": 78,
        "sequence-number": 2,
        "timestamp-ms": 1,
        "manifest-list": "nowhere",
        "summary": {"operation": "append"},
    }
    updates = [
        {"action": "add-snapshot", "snapshot": {**snapshot, "parent-snapshot-id": 77}},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 78},
        {"action": "add-snapshot", "snapshot": {**snapshot, "snapshot-id": 79, "sequence-number": 3}},
    ]

    told = icetower("table", "validate", table, written(folder, {"requirements": [], "updates": updates}))

    assert "would change: snapshots + 78 + 79" in spaced(told.out)
    assert "snapshot 78 on main" in told.out
    assert "safe to re-apply: " in told.out
    assert "nothing to conflict with" in told.out
    assert "the guard says" in told.out


def test_body_may_come_from_standard_input_and_the_answer_go_to_a_script(
    icetower: Icetower, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(json.dumps(STALE).encode())))

    told = icetower("table", "validate", table, "-", "--json")

    assert told.status == 3
    assert told.json["would-commit"] is False
    assert told.json["conflict"]["found"] == 77
    assert [item["result"] for item in told.json["requirements"]] == ["failed", "passed"]


def test_commit_that_does_nothing_says_so(icetower: Icetower, folder: Path, table: str) -> None:
    told = icetower("table", "validate", table, written(folder, {"requirements": [], "updates": []}))

    assert told.out == f"Table {table}: would be left as it is; there is nothing to change.\n"


def test_transaction_is_told_table_by_table(icetower: Icetower, folder: Path, table: str) -> None:
    namespace, _, name = table.partition(".")
    changes = [
        {"identifier": {"namespace": [namespace], "name": name}, **FINE},
        {"identifier": {"namespace": [namespace], "name": "nope"}, **FINE},
    ]
    file = written(folder, {"table-changes": changes})

    told = icetower("table", "validate-together", file)
    sent = icetower("table", "validate-together", file, "--json")

    missing = f"Table does not exist: {namespace}.nope (NoSuchTableException, HTTP status 404)"
    assert (told.status, sent.status) == (3, 3)
    assert told.out.startswith(f"Would be refused: {missing}\n")
    assert f"\nTable {table}: would commit.\n" in told.out
    assert f"\nTable {namespace}.nope: would be refused: {missing}\n" in told.out
    assert [item["would-commit"] for item in sent.json["tables"]] == [True, False]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "is not JSON"),
        ("[]", "does not hold a JSON object"),
        ("\udce4", "is not JSON"),
        (None, "cannot read"),
    ],
)
def test_file_that_holds_no_commit_is_wrong_usage(
    icetower: Icetower, folder: Path, content: str | None, why: str
) -> None:
    if content is not None:
        (folder / "commit.json").write_bytes(content.encode("utf-8", "surrogateescape"))

    told = icetower("table", "validate", "a.b", "commit.json")

    assert told.status == 2
    assert why in " ".join(told.err.replace("│", " ").split())


def test_commit_that_the_server_cannot_understand_is_refused_in_its_words(
    icetower: Icetower, folder: Path, table: str
) -> None:
    told = icetower("table", "validate", table, written(folder, {"updates": "none"}))

    assert (told.status, told.err) == (1, "Error: Invalid body: updates: Input should be a valid array\n")


def test_lost_race_of_any_command_is_told_with_who_came_first(icetower: Icetower, table: str) -> None:
    icetower("table", "set-ref", table, "audit")
    raced = icetower("table", "set-ref", table, "audit", "--snapshot", "77", "--expect", "5")
    new = icetower("table", "drop-ref", table, "audit", "--expect", "6")

    assert (raced.status, raced.out) == (1, "")
    assert raced.err.splitlines() == [
        "Error: Requirement failed: branch audit has changed: expected id 5 != 77",
        "ref snapshot id of audit: expected 5, found 77.",
    ]
    assert "expected 6, found 77" in new.err


@pytest.mark.parametrize(
    ("conflict", "lines"),
    [
        ({}, []),
        ({"requirement": "?", "snapshots": "?", "novel": 1}, []),
        (
            {"counter": "next-row-id", "expected": 4, "found": 9},
            ["Prepared for a next row id of 4 at most; it is 9."],
        ),
        (
            {"snapshots": [{"snapshot-id": number} for number in range(20)], "snapshot-count": 700},
            [
                "Since the commit was prepared, 700 snapshots landed, newest first:",
                *[f"  {number}" for number in range(5)],
                "  … and 695 more",
            ],
        ),
    ],
)
def test_conflicts_are_put_into_words_as_far_as_they_are_known(
    conflict: dict[str, Any], lines: list[str]
) -> None:
    assert conflict_lines(conflict) == lines
