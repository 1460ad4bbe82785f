"""Dry runs of bad commits: refused like the commit or told what it would be answered with, and nothing is written."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from tests.bad_input import (
    test_bodies,
    test_commit_columns,
    test_commit_requirements,
    test_commit_settings,
    test_commit_snapshots,
    test_locations,
)
from tests.bad_input.attacks import NO_NAMESPACE, NO_TABLE, NO_WAREHOUSE, POST, Attack, check_refused
from tests.bad_input.commit_bodies import FIRST, act, creation, valid_commits
from tests.bad_input.victim import Victim
from tests.bad_input.wire import send

TABLES = "/v1/namespaces/a/tables"
TABLE = f"{TABLES}/v2/validate"
TRANSACTION = "/v1/transactions/validate"
FINE: Any = {"requirements": [], "updates": [act("set-properties", updates={"a": "b"})]}


_COMMIT = re.compile(r"/v1(/[^/]+)?/(namespaces/[^/?]+/tables/[^/?]+|transactions/commit)")


def commit_attacks() -> list[Attack]:
    """Return every attack of the neighbours that is a commit to a table or to several."""
    modules = (
        test_bodies,
        test_commit_columns,
        test_commit_requirements,
        test_commit_settings,
        test_commit_snapshots,
        test_locations,
    )
    lists = [value for module in modules for value in vars(module).values() if isinstance(value, list)]
    return [
        attack
        for attacks in lists
        for attack in attacks
        if isinstance(attack, Attack) and attack.method == POST and _COMMIT.fullmatch(attack.target)
    ]


def rehearsed(attack: Attack) -> Attack:
    """Return the same request to the route that only says what it would come to."""
    target = attack.target.removesuffix("/commit") + "/validate"
    return replace(attack, target=target)


def without_the_time(error: Any) -> Any:
    # Some messages say what the time is.
    return {**error, "message": re.sub(r"ahead of \d{13}$", "ahead of now", error["message"])}


def rows_of_keys(victim: Victim) -> Any:
    return victim.database.fetch("SELECT * FROM idempotency_keys ORDER BY 1, 2", ())


@pytest.mark.parametrize("attack", commit_attacks(), ids=str)
def test_rehearsal_of_an_attack_tells_what_the_commit_would_be_answered_with(
    victim: Victim, attack: Attack
) -> None:
    """A body that cannot be understood, or a table that is not there, is refused; all else is a verdict."""
    raw = rehearsed(attack).raw(victim)
    answer = send(victim.port, raw, POST)

    if answer.status == 200:
        told = answer.json()
        assert told["would-commit"] is False
        error = told["error"]
        assert attack.target.startswith("/v1/transactions") or error["code"] != 404
        assert not error["message"].startswith("Invalid body")
    else:
        error = answer.json()["error"]
        assert error["code"] == answer.status
        assert answer.status != 409
    committed = send(victim.port, attack.raw(victim), POST).json()["error"]
    committed.pop("conflict", None)
    assert without_the_time(error) == without_the_time(committed)
    victim.check_unchanged()


REFUSED = [
    Attack("nothing", POST, TABLE, 400, "Invalid body: it is empty, a JSON object is expected"),
    Attack(
        "no list of updates",
        POST,
        TABLE,
        400,
        "Invalid body: updates: …",
        body={"requirements": [], "updates": "x"},
    ),
    Attack(
        "an unknown requirement",
        POST,
        TABLE,
        400,
        "Invalid body: requirements[0]: unknown or missing type; … (not 'assert-weather')",
        body={"requirements": [{"type": "assert-weather"}], "updates": []},
    ),
    Attack(
        "an unknown update",
        POST,
        TABLE,
        400,
        "Invalid body: updates[0]: unknown or missing … (not 'explode')",
        body={"requirements": [], "updates": [{"action": "explode"}]},
    ),
    Attack(
        "another table than in the path",
        POST,
        TABLE,
        400,
        "Invalid body: identifier is a.t, but the path names a.v2",
        body={**FINE, "identifier": {"namespace": ["a"], "name": "t"}},
    ),
    Attack("no table", POST, f"{TABLES}/x/validate", 404, "Table does not exist: a.x", NO_TABLE, FINE),
    Attack("a view", POST, f"{TABLES}/v/validate", 404, "Table does not exist: a.v", NO_TABLE, FINE),
    Attack(
        "no warehouse",
        POST,
        "/v1/nope/namespaces/a/tables/t/validate",
        404,
        "Warehouse does not exist: nope",
        NO_WAREHOUSE,
        FINE,
    ),
    Attack("a name of nul", POST, f"{TABLES}/a%00/validate", 400, "Invalid name …", body=FINE),
    Attack(
        "no changes", POST, TRANSACTION, 400, "Invalid body: table-changes: …", body={"table-changes": []}
    ),
    Attack(
        "a change without a table",
        POST,
        TRANSACTION,
        400,
        "Invalid body: table-changes[0].identifier: Field required",
        body={"table-changes": [FINE]},
    ),
    Attack(
        "a change of a bad name",
        POST,
        TRANSACTION,
        400,
        "Invalid name: it is empty",
        body={"table-changes": [{**FINE, "identifier": {"namespace": ["a"], "name": ""}}]},
    ),
    Attack("got", "GET", TABLE, 405, "GET is not allowed on …: allowed are POST"),
]


@pytest.mark.parametrize("attack", REFUSED, ids=str)
def test_attack_is_refused_and_changes_nothing(victim: Victim, attack: Attack) -> None:
    check_refused(attack, victim)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_rehearsal_of_a_good_commit_writes_nothing(victim: Victim, version: int) -> None:
    """Not even under an Idempotency-Key, which stays free for the commit."""
    path = f"{TABLES}/v{version}"
    metadata = victim.client.get(path).json()["metadata"]
    before = rows_of_keys(victim)

    for number, body in enumerate(valid_commits(metadata)):
        headers = {"idempotency-key": f"rehearsal-{version}-{number}"}
        told = victim.client.post(f"{path}/validate", json=body, headers=headers)
        assert (told.status_code, told.json()["would-commit"]) == (200, True), told.text
    made = victim.client.post(f"{TABLES}/x{version}/validate", json=creation(metadata))

    assert (made.status_code, made.json()["would-commit"]) == (200, True), made.text
    assert rows_of_keys(victim) == before
    victim.check_unchanged()


def test_rehearsed_creation_in_no_namespace_is_not_found(victim: Victim) -> None:
    metadata = victim.client.get(f"{TABLES}/v2").json()["metadata"]
    body = creation(metadata)
    attack = Attack(
        "",
        POST,
        "/v1/namespaces/nope/tables/x/validate",
        404,
        "Namespace does not exist: nope",
        NO_NAMESPACE,
        body,
    )

    check_refused(attack, victim)


def test_ten_thousand_refused_updates_are_told_in_good_time(victim: Victim) -> None:
    """Going on after each of them would take the square of their number."""
    wrong = act("set-snapshot-ref", ref_name="x", type="tag", snapshot_id=7)
    body = {"requirements": [], "updates": [wrong] * 10_000}

    told = victim.client.post(TABLE, json=body, timeout=10).json()

    assert [item["result"] for item in told["updates"][18:22]] == [*["refused"] * 2, *["not-tried"] * 2]
    victim.check_unchanged()


def test_ten_thousand_failed_requirements_are_told_in_good_time(victim: Victim) -> None:
    body = {
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": FIRST}] * 10_000,
        "updates": [],
    }

    told = victim.client.post(TABLE, json=body, timeout=10).json()

    assert [item["result"] for item in told["requirements"]] == ["failed"] * 10_000
    assert told["conflict"]["snapshot-count"] == 1
    victim.check_unchanged()


def test_long_names_are_cut_where_they_are_told_again(victim: Victim) -> None:
    name = "x" * 300_000
    body = {
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": FIRST}],
        "updates": [],
    }

    told = victim.client.post(TABLE, json=body)
    refused = victim.client.post(f"{TABLES}/v2", json=body)

    assert len(told.content) < 20_000
    assert len(refused.content) < 10_000
    assert refused.json()["error"]["conflict"]["requirement"]["ref"] == "x" * 1_000 + "…"
    victim.check_unchanged()
