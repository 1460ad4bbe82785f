"""The calls that plan scans: tasks followed to the last file, plans waited for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from app.client.http.failures import AnswerNotUnderstood, ScanNotPlanned
from app.client.table.scans import ScanCalls
from app.engine.model.identifiers import Namespace, TableIdentifier
from tests.unit.client.scripted_server import ScriptedServer, ok

ORDERS = TableIdentifier(Namespace(("eu", "sales")), "orders")
TABLE = "/v1/wh/namespaces/eu%1Fsales/tables/orders"


def tasks(names: Sequence[str], more: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "plan-tasks": list(more),
        "file-scan-tasks": [
            {"data-file": {"file-path": name}, "residual-filter": True, "delete-file-references": [0]}
            for name in names
        ],
        "delete-files": [{"file-path": f"deletes of {names[0]}"}] if names else [],
    }


def paths(server: ScriptedServer) -> list[str]:
    return [f"{request.method} {request.url.raw_path.decode()}" for request in server.requests]


def test_tasks_are_followed_to_the_last_file() -> None:
    server = ScriptedServer(
        [
            ok({"status": "completed", "plan-id": "p", **tasks(["a"], ["one", "two"])}),
            ok(tasks(["b"], ["three"])),
            ok(tasks(["c"])),
            ok(tasks(["d"])),
        ]
    )

    plan = ScanCalls(server.calls(), "v1/wh").plan(ORDERS, {"select": ["id"]})

    first = next(plan.files)
    assert (plan.answers, len(server.requests)) == (1, 1), "further answers are read when they are needed"
    # Places are those of the same answer.
    assert [(found.file["file-path"], found.deletes[0]["file-path"]) for found in (first, *plan.files)] == [
        (name, f"deletes of {name}") for name in "abcd"
    ]
    assert plan.answers == 4
    assert paths(server) == [f"POST {TABLE}/plan", *[f"POST {TABLE}/tasks"] * 3]
    sent = [json.loads(request.content) for request in server.requests]
    assert sent == [{"select": ["id"]}, *({"plan-task": token} for token in ("one", "two", "three"))]


def test_plan_task_that_comes_again_ends_the_plan() -> None:
    """It would go on for ever, with more and more files."""
    again = ok(tasks(["b"], ["one"]))
    server = ScriptedServer(
        [ok({"status": "completed", "plan-id": "p", **tasks(["a"], ["one"])}), again, again]
    )

    with pytest.raises(AnswerNotUnderstood, match="it sends a plan task again"):
        list(ScanCalls(server.calls(), "v1/wh").plan(ORDERS, {}).files)


def test_plan_is_waited_for_longer_each_time() -> None:
    server = ScriptedServer(
        [
            ok({"status": "submitted", "plan-id": "p"}),
            ok({"status": "submitted"}),
            ok({"status": "submitted", "plan-id": "p"}),
            ok({"status": "completed", **tasks(["a"])}),
        ]
    )
    waits: list[float] = []

    plan = ScanCalls(server.calls(), "v1/wh", waits.append).plan(ORDERS, {})

    assert [found.file["file-path"] for found in plan.files] == ["a"]
    assert waits == [0.1, 0.2, 0.4]
    assert paths(server)[1:] == [f"GET {TABLE}/plan/p"] * 3


def test_plan_that_takes_too_long_is_given_up() -> None:
    server = ScriptedServer([*[ok({"status": "submitted", "plan-id": "p"})] * 3, ok()])

    with pytest.raises(ScanNotPlanned, match="not planned within 0 s"):
        ScanCalls(server.calls(), "v1/wh", lambda _: None).plan(ORDERS, {}, timeout_seconds=0.2)

    assert paths(server)[-1] == f"DELETE {TABLE}/plan/p"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            {"status": "failed", "error": {"message": "No.", "type": "X", "code": 500}},
            "could not plan the scan: No.",
        ),
        ({"status": "cancelled"}, "the plan is cancelled"),
    ],
)
def test_plan_that_was_not_made_says_why(answer: dict[str, Any], reason: str) -> None:
    server = ScriptedServer([ok({"status": "submitted", "plan-id": "p"}), ok(answer)])

    with pytest.raises(ScanNotPlanned, match=reason):
        ScanCalls(server.calls(), "v1/wh", lambda _: None).plan(ORDERS, {})
