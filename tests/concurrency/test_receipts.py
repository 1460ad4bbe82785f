"""Racing writers in two server processes: each finds its own receipt, and it agrees with the history."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.builders.http_catalog import set_properties
from tests.concurrency.writers import Writer, at_once, load, make_tables

pytestmark = pytest.mark.slow
WRITERS = 12
COMMITS = 5
HEADER = "x-icetower-commit-id"
Answer = tuple[str, str, httpx.Response]
"""The request id, the Idempotency-Key and the answer of one commit."""


def asked(url: str, query: dict[str, str]) -> dict[str, Any]:
    """Return the one receipt of a request, which is found at the first question."""
    answer = httpx.get(f"{url}/v1/commits", params=query, timeout=60)
    assert answer.status_code == 200, answer.text
    (receipt,) = answer.json()["commits"]
    found: dict[str, Any] = receipt
    return found


def test_every_request_of_a_herd_finds_its_own_receipt(servers: list[str]) -> None:
    make_tables(servers[0], "t")
    writers = [Writer(servers[number % len(servers)], number) for number in range(WRITERS)]

    def work(number: int) -> list[Answer]:
        """Commit without retrying: half of them what may land together, half of them what conflicts."""
        writer, answers = writers[number], []
        for commit in range(COMMITS):
            request_id, key = f"request-{number}-{commit}", f"key-{number}-{commit}"
            metadata = load(writer.url, "t")
            body = writer._append(metadata, "main")
            if number % 2:
                body = {"updates": [{"action": "set-properties", "updates": {request_id: "x"}}]}
            headers = {"X-Request-Id": request_id, "Idempotency-Key": key}
            answers.append(
                (request_id, key, writer.http.post("/v1/namespaces/ns/tables/t", json=body, headers=headers))
            )
        return answers

    answers = [answer for each in at_once(WRITERS, work) for answer in each]
    events = httpx.get(f"{servers[0]}/v1/namespaces/ns/tables/t/history?pageSize=1000").json()["events"]
    by_request = {event["request-id"]: event for event in events}
    locations = {event["metadata-location-after"] for event in events}
    snapshots = {snapshot["snapshot-id"] for snapshot in load(servers[0], "t")["snapshots"]}
    landed_ids: list[int] = []

    assert len({answer.headers[HEADER] for _, _, answer in answers}) == WRITERS * COMMITS
    assert {answer.status_code for _, _, answer in answers} == {200, 409}
    for request_id, key, answer in answers:
        one, other = (
            asked(servers[0], {"request-id": request_id}),
            asked(servers[1], {"idempotency-key": key}),
        )
        assert one["commit-id"] == other["commit-id"] == answer.headers[HEADER]
        assert one["outcome"] == other["outcome"] == ("landed" if answer.status_code == 200 else "failed")
        if answer.status_code == 409:
            assert one["error"] == other["error"] == answer.json()["error"]
            assert request_id not in by_request
            continue
        (change,) = one["changes"]
        assert one["changes"] == other["changes"]
        assert change["metadata-location-after"] == answer.json()["metadata-location"]
        assert by_request[request_id]["metadata-location-after"] == change["metadata-location-after"]
        landed_ids += change.get("snapshot-ids", [])
        together = [
            event for event in events if event["metadata-location-after"] in change["metadata-location-after"]
        ]
        assert one["landed-together"] == len(together)
    assert sorted(landed_ids) == sorted(snapshots)
    assert {
        event["metadata-location-before"] for event in events if event["event"] == "committed"
    } <= locations


def test_a_refusal_is_known_at_once_when_another_server_is_asked(servers: list[str]) -> None:
    table, late = f"{servers[0]}/v1/namespaces/ns/tables/nope", set_properties(a="b")
    keys = [f"lost-{number}" for number in range(3)]

    refused = [httpx.post(table, json=late, headers={"Idempotency-Key": key}) for key in keys]

    # Each question comes right after a refusal, and each of them is answered by the other server.
    for key, answer in zip(keys, refused, strict=True):
        assert asked(servers[1], {"idempotency-key": key})["error"] == answer.json()["error"]
    again = httpx.post(table, json=late)
    by_id = httpx.get(f"{servers[1]}/v1/commits/{again.headers[HEADER]}", timeout=60)
    assert by_id.json()["outcome"] == "failed"
    assert by_id.json()["error"] == again.json()["error"]
