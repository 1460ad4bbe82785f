"""The calls that ask what a commit would do: paths, bodies, answers; and the conflict that a refusal brings."""

from __future__ import annotations

import json

import httpx
import pytest

from app.client.http.failures import CatalogRefused
from app.client.table.tables import TableCalls
from app.client.table.validation import ValidationCalls
from app.engine.model.identifiers import Namespace, TableIdentifier
from tests.unit.client.scripted_server import ScriptedServer, ok, refusal

ORDERS = TableIdentifier(Namespace(("eu", "sales")), "orders")
NAMED = {"namespace": ["eu", "sales"], "name": "orders"}
UPDATE = {"action": "set-properties", "updates": {"a": "b"}}
NEEDED = {"type": "assert-current-schema-id", "current-schema-id": 7}
COMMIT = {"identifier": NAMED, "requirements": [NEEDED], "updates": [UPDATE]}
VERDICT = {
    "identifier": NAMED,
    "would-commit": False,
    "error": {"message": "No.", "type": "CommitFailedException", "code": 409},
    "conflict": {"expected": 7, "found": 0},
    "requirements": [{"requirement": NEEDED, "result": "failed", "expected": 7, "found": 0}],
    "updates": [{"action": "set-properties", "result": "applied"}],
    "novel": 1,
}


def test_commit_is_sent_to_be_judged() -> None:
    server = ScriptedServer([ok(VERDICT)])

    verdict = ValidationCalls(server.calls(), "v1/wh").validate_body(ORDERS, COMMIT)

    assert server.requests[0].url.raw_path == b"/v1/wh/namespaces/eu%1Fsales/tables/orders/validate"
    assert json.loads(server.requests[0].content) == COMMIT
    assert not verdict.would_commit
    assert verdict.error is not None
    assert (verdict.error.code, verdict.requirements[0].result) == (409, "failed")
    assert verdict.model_dump(by_alias=True, exclude_unset=True) == VERDICT


def test_transaction_is_sent_to_be_judged() -> None:
    server = ScriptedServer([ok({"would-commit": False, "tables": [VERDICT]})])

    verdict = ValidationCalls(server.calls(), "v1/wh").validate_transaction_body({"table-changes": [COMMIT]})

    assert server.requests[0].url.raw_path == b"/v1/wh/transactions/validate"
    assert json.loads(server.requests[0].content) == {"table-changes": [COMMIT]}
    assert [table.would_commit for table in verdict.tables] == [False]


@pytest.mark.parametrize(
    ("answer", "conflict"),
    [
        (refusal(409), None),
        (
            httpx.Response(
                409,
                json={"error": {"message": "No.", "type": "X", "code": 409, "conflict": {"expected": 7}}},
            ),
            {"expected": 7},
        ),
        (
            httpx.Response(
                409, json={"error": {"message": "No.", "type": "X", "code": 409, "conflict": "?"}}
            ),
            None,
        ),
    ],
)
def test_refusal_brings_its_conflict_if_the_server_tells_one(
    answer: httpx.Response, conflict: dict[str, int] | None
) -> None:
    server = ScriptedServer([answer])

    with pytest.raises(CatalogRefused) as caught:
        TableCalls(server.calls(), "v1").commit(ORDERS, [UPDATE])

    assert caught.value.conflict == conflict
