"""Racing writers in two server processes: each finds its own receipt, and it agrees with the history."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import pytest

from tests.concurrency.writers import Writer, at_once, load, make_tables

pytestmark = pytest.mark.slow
WRITERS = 12
COMMITS = 5
HEADER = "x-icetower-commit-id"
Answer = tuple[str, str, httpx.Response]
"""The request id, the Idempotency-Key and the answer of one commit."""


def asked(url: str, query: dict[str, str]) -> dict[str, Any]:
    """Return the one receipt of a request; refusals reach the other server a moment later."""
    pause = threading.Event()
    for _ in range(200):
        answer = httpx.get(f"{url}/v1/commits", params=query, timeout=60)
        if answer.status_code == 200:
            (receipt,) = answer.json()["commits"]
            found: dict[str, Any] = receipt
            return found
        assert answer.json()["error"]["type"] == "NoSuchCommitException", answer.text
        pause.wait(0.05)
    raise AssertionError(f"no receipt for {query}")


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
