"""Headers about rebases: what they ask for, and what is refused with 400."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.builders.http_catalog import make_table

MODE, FILTER = "X-Icetower-Rebase", "X-Icetower-Conflict-Filter"
BODY: dict[str, Any] = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        (MODE, "sometimes", "must be off, appends or conflict-free"),
        (MODE, "", "must be off, appends or conflict-free"),
        (FILTER, "{", "it is not JSON"),
        (FILTER, "", "it is not JSON"),
        (FILTER, '{"type": "perhaps"}', "perhaps"),
        (FILTER, "7", "expected true, false or an object"),
        (FILTER, "[" * 5_000, ""),
    ],
)
@pytest.mark.parametrize(
    "path",
    [
        "namespaces/{ns}/tables/t",
        "namespaces/{ns}/tables/t/validate",
        "transactions/commit",
        "transactions/validate",
    ],
)
def test_header_without_meaning_is_refused_and_named(
    api: httpx.Client, ns: str, path: str, name: str, value: str, says: str
) -> None:
    before = make_table(api, ns, "t")["metadata-location"]
    body = (
        {"table-changes": [{"identifier": {"namespace": [ns], "name": "t"}, **BODY}]}
        if "trans" in path
        else BODY
    )

    answer = api.post(f"/v1/{path.format(ns=ns)}", json=body, headers={name: value})

    assert answer.status_code == 400
    assert f"Invalid {name}" in answer.json()["error"]["message"]
    assert says in answer.json()["error"]["message"]
    assert api.get(f"/v1/namespaces/{ns}/tables/t").json()["metadata-location"] == before


@pytest.mark.parametrize(
    "headers",
    [{MODE: "Appends"}, {MODE: "off"}, {FILTER: "true"}, {FILTER: '{"type": "is-null", "term": "id"}'}],
)
def test_header_with_a_meaning_changes_nothing_for_a_commit_that_wins(
    api: httpx.Client, ns: str, headers: dict[str, str]
) -> None:
    make_table(api, ns, "t")

    assert api.post(f"/v1/namespaces/{ns}/tables/t", json=BODY, headers=headers).status_code == 200


def test_refusal_says_in_its_conflict_why_it_was_not_rebased(api: httpx.Client, ns: str) -> None:
    table = make_table(api, ns, "t")["metadata"]

    def append(snapshot_id: int) -> dict[str, Any]:
        snapshot = {
            "snapshot-id": snapshot_id,
            "sequence-number": 1,
            "timestamp-ms": table["last-updated-ms"] + 1,
            "manifest-list": f"{table['location']}/metadata/snap-{snapshot_id}.avro",
            "summary": {"operation": "append", "wap.id": "7"},
            "schema-id": 0,
        }
        ref = {"ref-name": "main", "type": "branch", "snapshot-id": snapshot_id}
        return {
            "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}],
            "updates": [
                {"action": "add-snapshot", "snapshot": snapshot},
                {"action": "set-snapshot-ref", **ref},
            ],
        }

    assert api.post(f"/v1/namespaces/{ns}/tables/t", json=append(1)).is_success

    plain = api.post(f"/v1/namespaces/{ns}/tables/t", json=append(2)).json()["error"]
    asked = api.post(f"/v1/namespaces/{ns}/tables/t", json=append(2), headers={MODE: "appends"}).json()[
        "error"
    ]

    assert "not-rebased" not in plain["conflict"]
    assert asked["conflict"]["not-rebased"].startswith("Its summary has wap.id")
    assert {**asked["conflict"], "not-rebased": None} == {**plain["conflict"], "not-rebased": None}
    assert asked["message"] == plain["message"]
