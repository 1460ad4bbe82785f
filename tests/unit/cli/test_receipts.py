"""`icetower commit …` against a real server."""

from __future__ import annotations

import httpx

from tests.unit.cli.conftest import Icetower


def created(server_url: str, name: str) -> str:
    """Create a namespace under keys of the same name, and return the commit id."""
    headers = {"Idempotency-Key": f"key of {name}", "X-Request-Id": f"id-of-{name}"}
    answer = httpx.post(f"{server_url}/v1/namespaces", json={"namespace": [name]}, headers=headers)
    return str(answer.headers["x-icetower-commit-id"])


def test_a_receipt_is_shown_by_commit_id_key_and_request_id(icetower: Icetower, server_url: str) -> None:
    commit_id = created(server_url, "receipted")

    shown = icetower("commit", "show", commit_id, "--json")
    by_key = icetower("commit", "find", "--key", "key of receipted", "--json")
    by_request = icetower("commit", "find", "--request-id", "id-of-receipted", "--json")

    assert shown.json["outcome"] == "landed"
    assert by_key.json == by_request.json == [shown.json]


def test_people_read_what_landed_and_why_something_did_not(icetower: Icetower, server_url: str) -> None:
    landed, refused = [created(server_url, "landed_once") for _ in range(2)]
    failed = httpx.post(f"{server_url}/v1/namespaces", json={"namespace": ["landed_once"]})

    shown = icetower("commit", "show", landed).out
    found = icetower("commit", "find", "--key", "key of landed_once").out
    why = icetower("commit", "show", failed.headers["x-icetower-commit-id"]).out

    assert landed == refused
    assert "namespace landed_once" in shown
    assert found == shown
    assert "failed" in why
    assert "Namespace already exists: landed_once (AlreadyExistsException)" in why


def test_what_is_not_known_is_a_refusal(icetower: Icetower) -> None:
    unknown = icetower("commit", "find", "--request-id", "none")

    assert unknown.status == 1
    assert unknown.err == (
        "Error: No commit with X-Request-Id 'none' has landed, and no server is known to be at work on one\n"
    )


def test_both_or_neither_is_wrong_usage(icetower: Icetower) -> None:
    for arguments in ([], ["--key", "a", "--request-id", "b"]):
        assert icetower("commit", "find", *arguments).status == 2
