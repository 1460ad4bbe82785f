"""Snapshots that cannot be, stale numbers, and refs to nowhere: alone, and as the second half of a transaction."""

from __future__ import annotations

import time

import pytest

from tests.bad_input.attacks import POST, Attack, check_refused
from tests.bad_input.commit_bodies import (
    FIRST,
    SECOND,
    THIRD,
    act,
    schema,
    snapshot,
)
from tests.bad_input.commits import TABLES, committing, new, without
from tests.bad_input.victim import Victim

STALE = "Validation failed, please retry: Cannot add snapshot with sequence number {} older than last sequence number 2"
SNAPSHOTS = [
    committing(
        "snapshot is null", "Invalid body: updates[0].snapshot: …", act("add-snapshot", snapshot=None)
    ),
    committing(
        "empty snapshot",
        "Invalid body: updates[0].snapshot.snapshot-id: Field required",
        act("add-snapshot", snapshot={}),
    ),
    committing(
        "id is a text",
        "Invalid body: updates[0].snapshot.snapshot-id: Input should be a valid integer",
        new(snapshot_id="1003"),
    ),
    committing(
        "id is a fraction",
        "Invalid body: updates[0].snapshot.snapshot-id: Input should be a valid integer",
        new(snapshot_id=1003.0),
    ),
    committing(
        "id of none", "Cannot add snapshot with id -1: it stands for no snapshot", new(snapshot_id=-1)
    ),
    committing("id that is there", f"Snapshot already exists for id: {SECOND}", new(snapshot_id=SECOND)),
    committing("one id twice", f"Snapshot already exists for id: {THIRD}", new(), new(sequence=4)),
    committing(
        "no manifest list",
        "Invalid body: updates[0].snapshot: a snapshot needs a manifest-list",
        without(new(), "manifest-list"),
    ),
    committing(
        "only manifests in v2",
        f"Cannot add snapshot {THIRD} to a v2 table: it has no manifest-list",
        without(new(manifests=["s3://x/m.avro"]), "manifest-list"),
    ),
    committing(
        "manifest list is a list",
        "Invalid body: updates[0].snapshot.manifest-list: Input should be a valid string",
        new(manifest_list=["x"]),
    ),
    committing(
        "summary of numbers",
        "Invalid body: updates[0].snapshot.summary.added-records: Input should be a valid string",
        new(summary={"operation": "append", "added-records": 3}),
    ),
    committing(
        "summary with null",
        "Invalid body: updates[0].snapshot.summary.x: Input should be a valid string",
        new(summary={"operation": "append", "x": None}),
    ),
    committing(
        "summary is a text",
        "Invalid body: updates[0].snapshot.summary: Input should be an object",
        new(summary="append"),
    ),
    committing(
        "unknown operation",
        f"Cannot add snapshot {THIRD}: operation 'truncate' is none of append, delete, overwrite, replace",
        new(summary={"operation": "truncate"}),
    ),
    committing(
        "operation in capitals",
        f"Cannot add snapshot {THIRD}: operation 'APPEND' is none of …",
        new(summary={"operation": "APPEND"}),
    ),
    committing(
        "time below zero",
        "Invalid body: updates[0].snapshot.timestamp-ms: Input should be greater than or equal to 0",
        new(timestamp_ms=-1),
    ),
    committing(
        "time in microseconds",
        f"Cannot add snapshot {THIRD}: timestamp-ms 1700000000000000 is more than a day ahead of …",
        new(timestamp_ms=1_700_000_000_000_000),
    ),
    committing(
        "the end of time",
        f"Cannot add snapshot {THIRD}: timestamp-ms 9223372036854775807 is more than a day ahead of …",
        new(timestamp_ms=2**63 - 1),
    ),
    committing(
        "time in words",
        "Invalid body: updates[0].snapshot.timestamp-ms: Input should be a valid integer",
        new(timestamp_ms="now"),
    ),
    committing("stale", STALE.format(2), new(sequence=2), status=409),
    committing("very stale", STALE.format(0), new(sequence=0), status=409),
    committing("no sequence number", STALE.format(0), without(new(), "sequence-number"), status=409),
    committing(
        "sequence number below zero",
        "Invalid body: updates[0].snapshot.sequence-number: Input should be greater than or equal to 0",
        new(sequence_number=-1),
    ),
    committing(
        "sequence number in v1",
        "Cannot add snapshot with sequence number 3 to a v1 table: it must be 0",
        new(sequence_number=3),
        version=1,
    ),
    committing(
        "no row ids in v3",
        "Cannot add a snapshot: first-row-id is null",
        without(new(3), "first-row-id"),
        version=3,
    ),
    committing(
        "stale row ids",
        "Validation failed, please retry: Cannot add a snapshot, first-row-id is behind table next-row-id: 3 < 6",
        new(3, first_row_id=3),
        version=3,
        status=409,
    ),
    committing(
        "row ids below zero",
        "Invalid body: updates[0].snapshot.first-row-id: Input should be greater than or equal to 0",
        new(3, first_row_id=-1),
        version=3,
    ),
    committing(
        "rows without a count",
        "Invalid body: updates[0].snapshot: a snapshot with first-row-id needs added-rows",
        without(new(3), "added-rows"),
        version=3,
    ),
    committing(
        "a sequence number without a successor",
        f"Cannot add snapshot {THIRD}: after sequence number 9223372036854775807 the table could soon take no further "
        "commit; the highest allowed is 4294967298",
        without(new(sequence_number=2**63 - 1), "parent-snapshot-id"),
    ),
    committing(
        "more rows than there are numbers",
        "Cannot add a snapshot: 9223372036854775807 added rows exceed what row ids can number; the highest allowed is "
        "281474976710656",
        new(3, added_rows=2**63 - 1),
        version=3,
    ),
    committing(
        "snapshot with a tower in it",
        "Invalid body: updates[0].snapshot.novel: nested more than 40 levels deep",
        new(novel=[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]),
    ),
]

REFS = [
    committing(
        "ref to nowhere",
        "Cannot set new to unknown snapshot: 7",
        act("set-snapshot-ref", ref_name="new", type="branch", snapshot_id=7),
    ),
    committing(
        "main as a tag",
        "Cannot set main to a tag: it must be a branch",
        act("set-snapshot-ref", ref_name="main", type="tag", snapshot_id=FIRST),
    ),
    committing(
        "ref of a third kind",
        "Invalid body: updates[0].type: Input should be 'branch' or 'tag'",
        act("set-snapshot-ref", ref_name="new", type="twig", snapshot_id=FIRST),
    ),
    committing(
        "ref without a name",
        "Invalid body: updates[0].ref-name: String should have at least 1 character",
        act("set-snapshot-ref", ref_name="", type="branch", snapshot_id=FIRST),
    ),
    committing(
        "keep none",
        "Invalid min-snapshots-to-keep for new: 0, it must be greater than 0",
        act("set-snapshot-ref", ref_name="new", type="branch", snapshot_id=FIRST, min_snapshots_to_keep=0),
    ),
    committing(
        "age below zero",
        "Invalid max-ref-age-ms for new: -1, it must be greater than 0",
        act("set-snapshot-ref", ref_name="new", type="tag", snapshot_id=FIRST, max_ref_age_ms=-1),
    ),
    committing(
        "tag that keeps snapshots",
        "Tags do not support setting min-snapshots-to-keep (new)",
        act("set-snapshot-ref", ref_name="new", type="tag", snapshot_id=FIRST, min_snapshots_to_keep=1),
    ),
    committing(
        "keep 2^31",
        "Invalid body: updates[0].min-snapshots-to-keep: Input should be less than or equal to 2147483647",
        act(
            "set-snapshot-ref", ref_name="new", type="branch", snapshot_id=FIRST, min_snapshots_to_keep=2**31
        ),
    ),
    committing(
        "dangling main",
        f"Cannot remove snapshot {SECOND}: branch main refers to it and is not removed by the same commit",
        act("remove-snapshots", snapshot_ids=[SECOND]),
        status=409,
    ),
    committing(
        "dangling tag",
        f"Cannot remove snapshot {FIRST}: … refers to it and is not removed by the same commit",
        act("remove-snapshot-ref", ref_name="audit"),
        act("remove-snapshots", snapshot_ids=[FIRST]),
        status=409,
    ),
    committing(
        "ref made and its snapshot removed",
        f"Cannot remove snapshot {THIRD}: branch new refers to it and is not removed by the same commit",
        new(),
        act("set-snapshot-ref", ref_name="new", type="branch", snapshot_id=THIRD),
        act("remove-snapshots", snapshot_ids=[THIRD]),
        status=409,
    ),
    committing(
        "removed, then named",
        f"Cannot set new to unknown snapshot: {FIRST}",
        act("remove-snapshot-ref", ref_name="audit"),
        act("remove-snapshot-ref", ref_name="v1.0"),
        act("remove-snapshots", snapshot_ids=[FIRST]),
        act("set-snapshot-ref", ref_name="new", type="tag", snapshot_id=FIRST),
    ),
    committing(
        "ids are a number",
        "Invalid body: updates[0].snapshot-ids: Input should be a valid array",
        act("remove-snapshots", snapshot_ids=FIRST),
    ),
    committing(
        "an id of 2^64",
        "Invalid body: 18446744073709551616 is not a 64-bit integer",
        act("remove-snapshots", snapshot_ids=[2**64]),
    ),
]


@pytest.mark.parametrize("attack", [*SNAPSHOTS, *REFS], ids=str)
def test_attack_is_refused_and_changes_nothing(victim: Victim, attack: Attack) -> None:
    check_refused(attack, victim)


@pytest.mark.parametrize("attack", [*SNAPSHOTS, *REFS], ids=str)
def test_one_bad_change_undoes_a_whole_transaction(victim: Victim, attack: Attack) -> None:
    version = attack.target[-1]
    good = {
        "identifier": {"namespace": ["a"], "name": "t"},
        "requirements": [],
        "updates": [act("set-properties", updates={"a": "b"})],
    }
    bad = {"identifier": {"namespace": ["a"], "name": f"v{version}"}, **attack.body}
    message = attack.message.replace("Invalid body: updates", "Invalid body: table-changes[1].updates")

    check_refused(
        Attack(
            "",
            POST,
            "/v1/transactions/commit",
            attack.status,
            message,
            attack.kind,
            {"table-changes": [good, bad]},
        ),
        victim,
    )


def test_snapshot_dated_by_a_clock_a_little_ahead_is_taken(victim: Victim) -> None:
    soon_ms = time.time_ns() // 1_000_000 + 3_600_000
    name = victim.client.post(TABLES, json={"name": "ahead", "schema": schema()}).json()["metadata"][
        "location"
    ]

    made = snapshot(2, FIRST, 1, name, **{"timestamp-ms": soon_ms})
    answer = victim.client.post(
        f"{TABLES}/ahead", json={"requirements": [], "updates": [act("add-snapshot", snapshot=made)]}
    )

    assert answer.status_code == 200
    assert answer.json()["metadata"]["snapshots"][0]["timestamp-ms"] == soon_ms
