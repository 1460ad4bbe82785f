"""Scans of what is not there, by filters that are none, with tokens and ids that nobody handed out."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import pytest

from tests.bad_input.attacks import DELETE, GET, NO_FILE, NO_TABLE, POST, Attack, check_refused
from tests.bad_input.commit_bodies import FIRST, SECOND, act, snapshot
from tests.bad_input.victim import Victim
from tests.builders.http_catalog import SCHEMA

TABLES = "/v1/namespaces/a/tables"
TABLE, NO_SUCH, VIEW = f"{TABLES}/v2", f"{TABLES}/nope", f"{TABLES}/v"
PLAN, TASKS = f"{TABLE}/plan", f"{TABLE}/tasks"
NO_PLAN, NO_TASK = "NoSuchPlanIdException", "NoSuchPlanTaskException"
GONE = "Plan task does not exist: plan the scan again"


def planning(name: str, message: str, /, **wanted: Any) -> Attack:
    """Return an attempt to plan a scan."""
    body = {key.replace("_", "-"): value for key, value in wanted.items()}
    return Attack(name, POST, PLAN, 400, message, body=body)


def expanding(name: str, token: Any, status: int = 404, message: str = GONE) -> Attack:
    """Return an attempt to fetch the files of a plan task."""
    return Attack(name, POST, TASKS, status, message, NO_TASK if status == 404 else "", {"plan-task": token})


def packed(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def nots(levels: int) -> Any:
    document: Any = True
    for _ in range(levels):
        document = {"type": "not", "child": document}
    return document


BOMB = packed(bytes(16) + b"\x01" + zlib.compress(bytes(1 << 24)))
ATTACKS = [
    planning("a snapshot that is not there", "Invalid scan: snapshot 7 does not exist", snapshot_id=7),
    planning("a snapshot by name", "Invalid body: snapshot-id: …", snapshot_id="main"),
    planning("a snapshot of 80 bits", "Invalid body: …", snapshot_id=2**80),
    planning("a start without an end", "Invalid scan: start-snapshot-id and …", start_snapshot_id=FIRST),
    planning("an end without a start", "Invalid scan: start-snapshot-id and …", end_snapshot_id=FIRST),
    planning(
        "a range and a point",
        "Invalid scan: snapshot-id cannot be combined …",
        snapshot_id=FIRST,
        start_snapshot_id=FIRST,
        end_snapshot_id=SECOND,
    ),
    planning(
        "a range backwards",
        f"Invalid scan: snapshot {SECOND} is no ancestor of snapshot {FIRST}",
        start_snapshot_id=SECOND,
        end_snapshot_id=FIRST,
    ),
    planning(
        "a column that is not there", "Invalid select: there is no column named 'nope'", select=["nope"]
    ),
    planning("a column in another case", "Invalid select: …", select=["ID"]),
    planning("a column of nul", "Invalid select: …", select=["\0"]),
    planning("half a character for a column", "Invalid …", select=["\ud800"]),
    Attack(
        "a column that no plan can bring",
        POST,
        PLAN,
        406,
        "Cannot plan a scan of _last_updated_sequence_number: files in plans have no sequence numbers; …",
        "UnsupportedOperationException",
        {"select": ["_last_updated_sequence_number"]},
    ),
    planning("columns as a text", "Invalid body: select: …", select="id"),
    planning("statistics of no column", "Invalid stats-fields: …", stats_fields=["nope"]),
    planning("fewer rows than none", "Invalid body: min-rows-requested: …", min_rows_requested=-1),
    planning("a number for a filter", "Invalid filter: …", filter=7),
    planning("a list for a filter", "Invalid filter: …", filter=[]),
    planning(
        "a filter that is deep", "Invalid filter: it is nested more than 100 levels deep", filter=nots(150)
    ),
    planning("a filter that is very deep", "Invalid …", filter=nots(900)),
    planning(
        "a filter on no column",
        "Invalid filter: there is no column named 'nope'",
        filter={"type": "is-null", "term": "nope"},
    ),
    planning(
        "a filter of another type",
        "Invalid filter: 'x' cannot be compared …",
        filter={"type": "eq", "term": "id", "value": "x"},
    ),
    Attack("a plan of nothing", POST, PLAN, 400, "Invalid body: it is empty…", body=b""),
    Attack("a plan of a list", POST, PLAN, 400, "Invalid body: …", body=[]),
    Attack("a plan of no table", POST, f"{NO_SUCH}/plan", 404, "Table does not exist: a.nope", NO_TABLE, {}),
    Attack("a plan of a view", POST, f"{VIEW}/plan", 404, "Table does not exist: a.v", NO_TABLE, {}),
    Attack("files that are not there", POST, PLAN, 404, "File does not exist: …", NO_FILE, {}),
    Attack("a plan that is not there", GET, f"{PLAN}/nope", 404, "Plan does not exist: nope", NO_PLAN),
    Attack("a plan of nul", GET, f"{PLAN}/%00", 404, "Plan does not exist: …", NO_PLAN),
    Attack("a plan of zeros", GET, f"{PLAN}/{'0' * 36}", 404, "Plan does not exist: 000…", NO_PLAN),
    Attack("a plan with a bad percent", GET, f"{PLAN}/%zz", 400, "Invalid path piece '%zz': …"),
    Attack("giving up a plan of no table", DELETE, f"{NO_SUCH}/plan/x", 404, "Table …", NO_TABLE),
    expanding("a task of nothing", ""),
    expanding("a task of one letter", "A"),
    expanding("a task beyond ascii", "é"),
    expanding("a task of zeros", packed(bytes(64))),
    expanding("a task that unpacks to much", BOMB),
    expanding("a task that is long", "A" * 900_000),
    expanding("a number for a task", 7, 400, "Invalid body: plan-task: …"),
    expanding("a null for a task", None, 400, "Invalid body: plan-task: …"),
    Attack("no task", POST, TASKS, 400, "Invalid body: plan-task: …", body={}),
    Attack("a task of no table", POST, f"{NO_SUCH}/tasks", 404, "Table …", NO_TABLE, {"plan-task": "x"}),
]


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_attack_is_refused_and_changes_nothing(victim: Victim, attack: Attack) -> None:
    check_refused(attack, victim)


def test_no_manifest_list_is_read_outside_the_warehouse(victim: Victim) -> None:
    path = f"{TABLES}/astray-plan"
    added = snapshot(2, FIRST, 1, "", **{"manifest-list": victim.named("$OUTSIDE/list.avro")})
    main = act("set-snapshot-ref", ref_name="main", type="branch", snapshot_id=FIRST)
    body = {"requirements": [], "updates": [act("add-snapshot", snapshot=added), main]}
    victim.client.post(TABLES, json={"name": "astray-plan", "schema": SCHEMA}).raise_for_status()
    victim.client.post(path, json=body).raise_for_status()
    victim.look_again()

    check_refused(Attack("", POST, f"{path}/plan", 400, "Invalid manifest list …", body={}), victim)
