"""Branches and tags over HTTP."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.builders.http_catalog import error_of, make_table, set_properties

_IDS = itertools.count(7_000)


def append(api: httpx.Client, ns: str, branch: str = "main", parent: int | None = None) -> int:
    """Commit a snapshot without files to table t and return its id."""
    metadata = api.get(f"/v1/namespaces/{ns}/tables/t").json()["metadata"]
    snapshot_id = next(_IDS)
    snapshot: dict[str, Any] = {
        "snapshot-id": snapshot_id,
        "sequence-number": metadata["last-sequence-number"] + 1,
        "timestamp-ms": metadata["last-updated-ms"] + 1,
        "manifest-list": f"{metadata['location']}/metadata/snap-{snapshot_id}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    if parent is not None:
        snapshot["parent-snapshot-id"] = parent
    updates = [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": branch, "type": "branch", "snapshot-id": snapshot_id},
    ]
    response = api.post(f"/v1/namespaces/{ns}/tables/t", json={"requirements": [], "updates": updates})
    assert response.status_code == 200, response.text
    return snapshot_id


@pytest.fixture
def refs(api: httpx.Client, ns: str) -> str:
    """The path of the refs of a table with two snapshots on main."""
    make_table(api, ns, "t")
    append(api, ns, parent=append(api, ns))
    return f"/v1/namespaces/{ns}/tables/t/refs"


def head(api: httpx.Client, refs: str, name: str = "main") -> int:
    found: int = api.get(f"{refs}/{name}").json()["snapshot-id"]
    return found


def test_new_branch_starts_at_main_and_the_answer_is_a_receipt(api: httpx.Client, ns: str, refs: str) -> None:
    made = api.put(f"{refs}/audit", json={})

    loaded = api.get(f"/v1/namespaces/{ns}/tables/t").json()
    receipt = made.json()
    assert made.status_code == 200
    assert receipt["metadata-location-after"] == loaded["metadata-location"]
    assert receipt["metadata-location-before"] == loaded["metadata"]["metadata-log"][-1]["metadata-file"]
    assert receipt["snapshot-id-after"] == loaded["metadata"]["current-snapshot-id"]
    assert "snapshot-id-before" not in receipt
    assert receipt["reference"] == loaded["metadata"]["refs"]["audit"]
    assert (receipt["namespace"], receipt["table"], receipt["ref"]) == ([ns], "t", "audit")
    assert receipt["author"] == "anonymous"
    assert made.headers["x-request-id"] == receipt["request-id"]


def test_names_of_refs_are_percent_encoded(api: httpx.Client, refs: str) -> None:
    assert api.put(f"{refs}/audit%2F2025%20x", json={}).status_code == 200

    assert [ref["name"] for ref in api.get(refs).json()["refs"]] == ["main", "audit/2025 x"]
    assert api.get(f"{refs}/audit%2F2025%20x").json()["name"] == "audit/2025 x"


def test_retention_is_set_kept_and_cleared(api: httpx.Client, refs: str) -> None:
    api.put(f"{refs}/audit", json={"min-snapshots-to-keep": 3, "max-ref-age-ms": 1000})

    kept = api.put(f"{refs}/audit", json={"snapshot-id": head(api, refs)}).json()
    cleared = api.put(f"{refs}/audit", json={"max-ref-age-ms": None}).json()

    assert kept["changed"] is False
    assert kept["reference"]["min-snapshots-to-keep"] == 3
    assert cleared["changed"] is True
    assert "max-ref-age-ms" not in api.get(f"{refs}/audit").json()
    assert api.get(f"{refs}/audit").json()["min-snapshots-to-keep"] == 3


def test_expectation_that_fails_is_a_conflict_and_changes_nothing(api: httpx.Client, refs: str) -> None:
    now = head(api, refs)

    wrong = api.put(f"{refs}/main", json={"rollback-to": now - 1, "expected-snapshot-id": now - 1})
    absent = api.put(f"{refs}/main", json={"expected-snapshot-id": None})
    fresh = api.put(f"{refs}/fresh", json={"expected-snapshot-id": None})

    assert error_of(wrong)[:2] == (409, "CommitFailedException")
    assert error_of(absent)[:2] == (409, "CommitFailedException")
    assert fresh.status_code == 200
    assert head(api, refs) == now


def test_key_that_is_sent_again_answers_the_first_receipt(api: httpx.Client, refs: str) -> None:
    now, headers = head(api, refs), {"idempotency-key": f"back {refs}"}
    first = api.put(f"{refs}/main", json={"rollback-to": now - 1}, headers=headers)
    api.put(f"{refs}/main", json={"snapshot-id": now})

    again = api.put(f"{refs}/main", json={"rollback-to": now - 1}, headers=headers)

    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    assert head(api, refs) == now


def test_key_that_is_sent_again_answers_although_the_metadata_of_then_is_gone(
    api: httpx.Client, ns: str, refs: str
) -> None:
    forgetting = {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "1",
    }
    api.post(f"/v1/namespaces/{ns}/tables/t", json=set_properties(**forgetting)).raise_for_status()
    headers = {"idempotency-key": f"made {refs}"}
    first = api.put(f"{refs}/audit", json={}, headers=headers)
    for number in range(3):
        api.post(f"/v1/namespaces/{ns}/tables/t", json=set_properties(a=str(number))).raise_for_status()
    assert not Path(urlsplit(first.json()["metadata-location-after"]).path).exists()

    again = api.put(f"{refs}/audit", json={}, headers=headers)

    assert (again.status_code, again.json()) == (200, first.json())


def test_removal_that_is_sent_again_answers_the_first_receipt(api: httpx.Client, refs: str) -> None:
    api.put(f"{refs}/audit", json={})
    headers = {"idempotency-key": f"drop {refs}"}

    first = api.delete(f"{refs}/audit", headers=headers)
    again = api.delete(f"{refs}/audit", headers=headers)

    assert first.json()["snapshot-id-before"] == head(api, refs)
    assert again.json() == first.json()
    assert error_of(api.delete(f"{refs}/audit"))[:2] == (404, "NoSuchRefException")


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({"snapshot-id": 1}, 404, "NoSuchSnapshotException"),
        ({"ref": "nope"}, 404, "NoSuchRefException"),
        ({"fast-forward-to": "nope"}, 404, "NoSuchRefException"),
        ({"timestamp-ms": 1}, 404, "NoSuchSnapshotException"),
        ({"publish": "nope"}, 404, "NoSuchSnapshotException"),
        ({"cherry-pick": 1}, 404, "NoSuchSnapshotException"),
        ({"snapshot-id": 1, "ref": "main"}, 400, "BadRequestException"),
        ({"snapshot-id": "1"}, 400, "BadRequestException"),
        ({"rollback-to": ""}, 400, "BadRequestException"),
        ({"type": "tag"}, 400, "BadRequestException"),
        ({"type": "twig"}, 400, "BadRequestException"),
        ({"min-snapshots-to-keep": 0}, 400, "BadRequestException"),
        ([], 400, "BadRequestException"),
    ],
)
def test_wish_that_cannot_be_is_refused(
    api: httpx.Client, refs: str, body: object, status: int, kind: str
) -> None:
    assert error_of(api.put(f"{refs}/main", json=body))[:2] == (status, kind)


def test_move_that_the_snapshots_forbid_is_told_as_that(api: httpx.Client, ns: str, refs: str) -> None:
    append(api, ns, "aside", parent=head(api, refs) - 1)

    response = api.put(f"{refs}/main", json={"fast-forward-to": "aside"})

    assert error_of(response) == (
        400,
        "ValidationException",
        "Cannot fast-forward: main is not an ancestor of aside",
    )


def test_main_is_not_removed_and_expectations_of_removals_are_checked(api: httpx.Client, refs: str) -> None:
    api.put(f"{refs}/audit", json={})

    assert error_of(api.delete(f"{refs}/main"))[:2] == (400, "ValidationException")
    assert error_of(api.delete(f"{refs}/audit?expected-snapshot-id=1"))[:2] == (409, "CommitFailedException")
    assert error_of(api.delete(f"{refs}/audit?expected-snapshot-id=x"))[0] == 400
    assert api.delete(f"{refs}/audit?expected-snapshot-id={head(api, refs)}").status_code == 200


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_refs_of_a_missing_table_are_not_found(api: httpx.Client, ns: str, method: str) -> None:
    response = api.request(method, f"/v1/namespaces/{ns}/tables/nope/refs/audit", json={})

    assert error_of(response)[:2] == (404, "NoSuchTableException")
