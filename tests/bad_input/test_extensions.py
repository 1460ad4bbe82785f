"""Snapshots, files, differences, refs and expiry: asked for what is not there, cannot be, or lies elsewhere."""

from __future__ import annotations

import itertools
import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.bad_input.attacks import CONFLICT, DELETE, GET, NO_FILE, NO_TABLE, POST, Attack, check_refused
from tests.bad_input.commit_bodies import FIRST, SECOND, act, snapshot
from tests.bad_input.test_listings_and_loads import forged
from tests.bad_input.victim import Victim
from tests.builders.http_catalog import SCHEMA

PUT = "PUT"
TABLES = "/v1/namespaces/a/tables"
TABLE, NO_SUCH, VIEW = f"{TABLES}/v2", f"{TABLES}/nope", f"{TABLES}/v"
FILES = f"{TABLE}/snapshots/main/files"
NO_SNAPSHOT, NO_REF = "NoSuchSnapshotException", "NoSuchRefException"
BAD_MOVE = "ValidationException"
BAD_TOKEN = "Invalid page token: …"
BAD_ID = "Invalid expected-snapshot-id …: it must be a snapshot id"
_NUMBERS = itertools.count(1)


def filtering(name: str, message: str, value: object) -> Attack:
    """Return an attempt to list files by a filter."""
    text = value if isinstance(value, str) else json.dumps(value)
    return Attack(name, GET, f"{FILES}?filter={quote(text)}", 400, message)


def turning(name: str, what: str, place: bytes) -> Attack:
    """Return an attempt to go on after a place that somebody made up; the table's own checksum is on it."""
    listing = what.encode().decode() + " 1 a\x1fv2"
    return Attack(
        name, GET, f"{TABLE}/{what.split(maxsplit=1)[0]}?pageToken={forged(place, listing)}", 400, BAD_TOKEN
    )


def moving(
    name: str, message: str, status: int = 400, kind: str = "", /, ref: str = "main", **wanted: Any
) -> Attack:
    """Return an attempt to change a branch or tag."""
    body = {key.replace("_", "-"): value for key, value in wanted.items()}
    return Attack(name, PUT, f"{TABLE}/refs/{ref}", status, message, kind, body)


def expiring(name: str, message: str, /, **wanted: Any) -> Attack:
    """Return an attempt to expire snapshots."""
    body = {key.replace("_", "-"): value for key, value in wanted.items()}
    return Attack(name, POST, f"{TABLE}/expire", 400, message, body=body)


def searching(name: str, message: str, /, **wanted: Any) -> Attack:
    """Return an attempt to mark orphans."""
    body = {"dry-run": False} | {key.replace("_", "-"): value for key, value in wanted.items()}
    return Attack(name, POST, f"{TABLE}/orphans", 400, message, body=body)


def keeping(
    what: str, name: str, message: str, status: int = 400, kind: str = "", /, **wanted: Any
) -> Attack:
    """Return an attempt at upkeep."""
    body = {key.replace("_", "-"): value for key, value in wanted.items()}
    return Attack(name, POST, f"{TABLE}/{what}", status, message, kind, body)


def nots(levels: int) -> str:
    """Return a filter of nots in nots."""
    return '{"type":"not","child":' * levels + "true" + "}" * levels


TOO_DEEP = "Invalid filter: it is nested more than 100 levels deep"
HISTORY = [
    Attack("no such snapshot", GET, f"{TABLE}/snapshots/7", 404, "…7…", NO_SNAPSHOT),
    Attack("snapshot of 30 digits", GET, f"{TABLE}/snapshots/{'9' * 30}", 404, "…999…", NO_SNAPSHOT),
    Attack("snapshot below all", GET, f"{TABLE}/snapshots/-{'9' * 19}", 404, "…-999…", NO_SNAPSHOT),
    Attack("snapshot by an unknown name", GET, f"{TABLE}/snapshots/nope", 404, "…nope…", NO_SNAPSHOT),
    Attack("snapshot of nul", GET, f"{TABLE}/snapshots/%00", 404, "…", NO_SNAPSHOT),
    Attack("snapshot in arabic digits", GET, f"{TABLE}/snapshots/%D9%A1", 404, "…", NO_SNAPSHOT),
    Attack("snapshot with a bad percent", GET, f"{TABLE}/snapshots/%zz", 400, "Invalid path piece '%zz': …"),
    Attack("snapshots of a view", GET, f"{VIEW}/snapshots", 404, "Table does not exist: a.v", NO_TABLE),
    Attack("snapshots of none", GET, f"{NO_SUCH}/snapshots", 404, "Table does not exist: a.nope", NO_TABLE),
    Attack("history of none", GET, f"{NO_SUCH}/history", 404, "Table does not exist: a.nope", NO_TABLE),
    turning("snapshots after words", "snapshots", b"x y z"),
    turning("snapshots after the end of numbers", "snapshots", b"1 2 9999999999999999999"),
    turning("history after nothing", "history", b"-"),
    turning("history after the end of numbers", "history", b"9999999999999999999"),
    turning("history before the end of numbers", "history", b"-9999999999999999999"),
    Attack("files of no snapshot", GET, f"{TABLE}/snapshots/7/files", 404, "…7…", NO_SNAPSHOT),
    Attack("files that are gone", GET, FILES, 404, "File does not exist: …/snap-1002.avro", NO_FILE),
    filtering("files by no json", "Invalid filter: it is not JSON: …", "x = 1"),
    filtering("files by a number", "Invalid filter: …", 7),
    filtering("files by an unknown operation", "Invalid filter: …'eval'…", {"type": "eval", "term": "id"}),
    filtering(
        "files by an unknown column", "Invalid filter: …nope…", {"type": "eq", "term": "nope", "value": 1}
    ),
    filtering(
        "files by a word for a number", "Invalid filter: …", {"type": "eq", "term": "id", "value": "one"}
    ),
    filtering("files by 150 nots", TOO_DEEP, nots(150)),
    filtering("files by 900 nots", TOO_DEEP, nots(900)),
    filtering("files by 1,200 nots", "Invalid filter: …", nots(1_200)),
    filtering(
        "files by too long a filter", "Invalid filter: 31000 characters are more than 30000", "x" * 31_000
    ),
    Attack("difference from nowhere", GET, f"{TABLE}/diff?from=nope", 404, "…nope…", NO_SNAPSHOT),
    Attack(
        "difference from a file outside",
        GET,
        f"{TABLE}/diff?from=$OUTSIDE/00001-x.metadata.json",
        404,
        "…",
        NO_FILE,
    ),
    Attack("difference from another's file", GET, f"{TABLE}/diff?from=$METADATA", 404, "…", NO_FILE),
    Attack(
        "health of two states",
        GET,
        f"{TABLE}/health?ref=main&snapshot-id=1",
        400,
        "…both snapshot-id and ref…",
    ),
    Attack("health of no number", GET, f"{TABLE}/health?snapshot-id=x", 400, "Invalid snapshot-id 'x': …"),
    Attack("health of no snapshot", GET, f"{TABLE}/health?snapshot-id=77", 404, "…77…", NO_SNAPSHOT),
    Attack("health of no ref", GET, f"{TABLE}/health?ref=nope", 404, "…nope…", NO_SNAPSHOT),
    Attack("health of no table", GET, TABLE + "s/health", 404, "…", NO_TABLE),
    Attack(
        "profile of two states",
        GET,
        f"{TABLE}/profile?ref=main&snapshot-id=1",
        400,
        "…both snapshot-id and ref…",
    ),
    Attack("profile of no ref", GET, f"{TABLE}/profile?ref=nope", 404, "…nope…", NO_SNAPSHOT),
    Attack("health by another's token", GET, "/v1/health?pageToken=nope", 400, "…"),
    Attack("health in pages of nothing", GET, "/v1/health?pageSize=0", 400, "Invalid pageSize …"),
    Attack("difference from no version", GET, f"{TABLE}/diff?from=metadata:99999", 404, "…99999…", NO_FILE),
]

REFS = [
    Attack("no such ref", GET, f"{TABLE}/refs/nope", 404, "…nope…", NO_REF),
    Attack("ref of another case", GET, f"{TABLE}/refs/MAIN", 404, "…MAIN…", NO_REF),
    Attack("remove main", DELETE, f"{TABLE}/refs/main", 400, "Cannot remove main: …", BAD_MOVE),
    Attack("remove none", DELETE, f"{TABLE}/refs/nope", 404, "…nope…", NO_REF),
    Attack(
        "remove one that moved",
        DELETE,
        f"{TABLE}/refs/audit?expected-snapshot-id=7",
        409,
        f"Requirement failed: branch audit has changed: expected id 7 != {FIRST}",
        CONFLICT,
    ),
    Attack("remove by a word", DELETE, f"{TABLE}/refs/audit?expected-snapshot-id=x", 400, BAD_ID),
    Attack("remove by 2^63", DELETE, f"{TABLE}/refs/audit?expected-snapshot-id={2**63}", 400, BAD_ID),
    moving("to nowhere", "…7…", 404, NO_SNAPSHOT, snapshot_id=7),
    moving("ahead to no branch", "…nope…", 404, NO_REF, fast_forward_to="nope"),
    moving(
        "to two places",
        "Invalid body: only one of snapshot-id, timestamp-ms …",
        snapshot_id=FIRST,
        timestamp_ms=1,
    ),
    moving("back to what never was", "…7…", 404, NO_SNAPSHOT, rollback_to=7),
    moving("to a text", "Invalid body: snapshot-id: Input should be a valid integer", snapshot_id="1001"),
    moving(
        "before time began",
        "Snapshot does not exist: none is known to have been current at -1 (1969-12-31T23:59:59.999+00:00)",
        404,
        NO_SNAPSHOT,
        timestamp_ms=-1,
    ),
    moving("main as a tag", "Cannot set main to a tag: it must be a branch", type="tag"),
    moving("a third kind", "Invalid body: type: Input should be 'branch' or 'tag'", type="twig"),
    moving("keep none", "Invalid min-snapshots-to-keep for main: 0, …", min_snapshots_to_keep=0),
    moving(
        "somewhere else",
        f"Requirement failed: branch main has changed: expected id {FIRST} != {SECOND}",
        409,
        CONFLICT,
        expected_snapshot_id=FIRST,
    ),
    moving(
        "not there yet",
        f"Requirement failed: branch main exists, at {SECOND}",
        409,
        CONFLICT,
        expected_snapshot_id=None,
    ),
    moving("name of dots", "Invalid branch or tag name '..': …", ref="%2e%2e", snapshot_id=FIRST),
    moving(
        "name of nul", "Invalid branch or tag name 'a\\x00': it contains …", ref="a%00", snapshot_id=FIRST
    ),
    moving("name too long", "Invalid branch or tag name: 256 characters …", ref="x" * 256, snapshot_id=FIRST),
    moving("pick nothing", "…7…", 404, NO_SNAPSHOT, cherry_pick=7),
    moving("pick what is there", f"…{FIRST}…", 400, BAD_MOVE, cherry_pick=FIRST),
    moving("publish nothing", "…nope…", 404, NO_SNAPSHOT, publish="nope"),
    moving(
        "publish the empty id", "Invalid body: publish: String should have at least 1 character", publish=""
    ),
]

EXPIRY = [
    expiring(
        "older than words",
        "Invalid body: older-than-ms: Input should be a valid integer",
        older_than_ms="now",
    ),
    expiring(
        "older than time", "Invalid body: older-than-ms: Input should be greater than or …", older_than_ms=-1
    ),
    expiring(
        "retain none", "Invalid body: retain-last: Input should be greater than or equal to 1", retain_last=0
    ),
    expiring(
        "ids are a number", "Invalid body: snapshot-ids: Input should be a valid array", snapshot_ids=FIRST
    ),
    expiring(
        "what refs name", f"Cannot expire {SECOND}. Still referenced by refs: [main]", snapshot_ids=[SECOND]
    ),
    expiring("unknown cleanup", "Invalid body: cleanup: Input should be …", cleanup="everything"),
    expiring(
        "grace for ever", "Invalid body: grace-period-ms: Input should be less …", grace_period_ms=2**62
    ),
    expiring("dry in words", "Invalid body: dry-run: Input should be a valid boolean", dry_run="yes"),
    Attack("expire none", POST, f"{NO_SUCH}/expire", 404, "Table does not exist: a.nope", NO_TABLE, {}),
    Attack("expire a view", POST, f"{VIEW}/expire", 404, "Table does not exist: a.v", NO_TABLE, {}),
]

ORPHANS = [
    searching(
        "orphans older than words",
        "Invalid body: older-than-ms: Input should be a valid …",
        older_than_ms="now",
    ),
    searching(
        "orphans older than tomorrow",
        "Cannot look for orphans: older-than-ms … is less than …",
        older_than_ms=2**60,
    ),
    searching(
        "orphans elsewhere",
        "Invalid location 'file:///etc': it is outside the table's …",
        location="file:///etc",
    ),
    searching(
        "orphans nowhere", "Invalid body: location: String should have at least 1 character", location=""
    ),
    searching("orphans above", "Invalid location …: it is outside the table's …", location="$WAREHOUSE"),
    searching("orphans of a list elsewhere", "Invalid file list …", file_list="file:///etc/list.csv"),
    searching(
        "orphans for ever", "Invalid body: grace-period-ms: Input should be less …", grace_period_ms=2**62
    ),
    searching("orphans dry in words", "Invalid body: dry-run: Input should be a valid boolean", dry_run="no"),
    Attack("orphans of none", POST, f"{NO_SUCH}/orphans", 404, "Table does not exist: a.nope", NO_TABLE, {}),
    Attack("orphans of a view", POST, f"{VIEW}/orphans", 404, "Table does not exist: a.v", NO_TABLE, {}),
    Attack("orphan runs of none", GET, f"{NO_SUCH}/orphans", 404, "Table does not exist: a.nope", NO_TABLE),
]


MANIFESTS, DANGLING, STATISTICS = "rewrite-manifests", "remove-dangling-deletes", "partition-statistics"
UPKEEP = [
    keeping(MANIFESTS, "manifests of a spec in words", "Invalid body: spec-id: Input …", spec_id="all"),
    keeping(
        MANIFESTS, "manifests of no spec", "Cannot rewrite manifests of spec-id 77: the table …", spec_id=77
    ),
    keeping(
        MANIFESTS,
        "manifests by no field",
        "Cannot cluster-by 'nope': no partition field has this name, nor …",
        cluster_by="nope",
    ),
    keeping(MANIFESTS, "manifests by nothing", "Invalid body: cluster-by: String should …", cluster_by=""),
    keeping(
        MANIFESTS, "tiny manifests", "Invalid body: target-size-bytes: Input should …", target_size_bytes=1
    ),
    keeping(MANIFESTS, "all in words", "Invalid body: all: Input should be a valid boolean", all="yes"),
    keeping(MANIFESTS, "manifests of no branch", "…nope…", 404, NO_REF, branch="nope"),
    keeping(DANGLING, "deletes of no branch", "…nope…", 404, NO_REF, branch="nope"),
    keeping(
        DANGLING, "deletes of a number", "Invalid body: branch: Input should be a valid string", branch=7
    ),
    keeping(STATISTICS, "statistics of words", "Invalid body: snapshot-id: Input …", snapshot_id="main"),
    *[
        Attack(
            f"{what} of {kind}", POST, f"{path}/{what}", 404, f"Table does not exist: {name}", NO_TABLE, {}
        )
        for what in (MANIFESTS, DANGLING, STATISTICS)
        for kind, path, name in (("none", NO_SUCH, "a.nope"), ("a view", VIEW, "a.v"))
    ],
]


@pytest.mark.parametrize("attack", [*HISTORY, *REFS, *EXPIRY, *ORPHANS, *UPKEEP], ids=str)
def test_attack_is_refused_and_changes_nothing(victim: Victim, attack: Attack) -> None:
    check_refused(attack, victim)


@pytest.mark.parametrize(
    "elsewhere",
    [
        "$OUTSIDE/list.avro",
        "file:///etc/passwd",
        "s3://other-company/list.avro",
        "$WAREHOUSE/../outside/list.avro",
        "http://169.254.169.254/latest/meta-data",
        "nonsense",
    ],
)
def test_no_manifest_is_read_outside_the_warehouse(victim: Victim, elsewhere: str) -> None:
    """A writer may name any place as a manifest list; the server does not go there with its own keys."""
    name = f"astray-{next(_NUMBERS)}"
    path = f"{TABLES}/{name}"
    added = snapshot(2, FIRST, 1, "", **{"manifest-list": victim.named(elsewhere)})
    main = act("set-snapshot-ref", ref_name="main", type="branch", snapshot_id=FIRST)
    body = {"requirements": [], "updates": [act("add-snapshot", snapshot=added), main]}
    victim.client.post(TABLES, json={"name": name, "schema": SCHEMA}).raise_for_status()
    victim.client.post(path, json=body).raise_for_status()
    victim.look_again()

    check_refused(Attack("", GET, f"{path}/snapshots/main/files", 400, "Invalid manifest list …"), victim)
