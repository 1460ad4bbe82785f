"""Upkeep over HTTP: plans, and jobs that are begun, held and ended."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.builders.http_catalog import error_of, make_table, make_view, set_properties


@pytest.fixture
def job_id() -> str:
    return uuid4().hex


@pytest.fixture
def path(api: httpx.Client, ns: str) -> str:
    make_table(api, ns, "t")
    return f"/v1/namespaces/{ns}/tables/t"


def begin(api: httpx.Client, path: str, **body: Any) -> httpx.Response:
    return api.post(f"{path}/maintenance/jobs", json={"job": "expire-snapshots", **body})


def test_plan_says_what_is_left_and_why(api: httpx.Client, path: str) -> None:
    api.post(path, json=set_properties(**{"icetower.maintenance": "recommended"})).raise_for_status()

    found = api.get(f"{path}/maintenance").json()

    on = {switch["job"]: switch["on"] for switch in found["jobs"]}
    assert on["expire-snapshots"]
    assert not on["table-statistics"]
    # A table without files: only orphans have never been looked for.
    assert [job["job"] for job in found["plan"]] == ["remove-orphan-files"]
    left = {job["job"]: job["reason"] for job in found["left"]}
    assert left["rewrite-data-files"] == "the table has no files"
    assert left["table-statistics"] == "it is off: icetower.maintenance (table)"
    settings = {item["name"]: item for item in found["settings"]}
    assert settings["icetower.maintenance"]["origin"] == "table"


def test_jobs_asked_for_by_name_are_planned_whatever_the_policy_says(api: httpx.Client, path: str) -> None:
    found = api.get(f"{path}/maintenance", params={"jobs": "remove-orphan-files, expire-snapshots"}).json()

    assert [job["job"] for job in found["plan"]] == ["remove-orphan-files"]
    assert [job["job"] for job in found["left"]] == ["expire-snapshots"]
    refused = api.get(f"{path}/maintenance", params={"jobs": "vacuum"})
    assert error_of(refused)[2].startswith("Invalid jobs: 'vacuum' is not one of rewrite-data-files, ")


def test_job_is_begun_held_and_ended(api: httpx.Client, path: str, job_id: str) -> None:
    begun = begin(api, path, id=job_id, options={"a": "b"}).json()
    again = begin(api, path, id=job_id).json()
    other = begin(api, path)
    held = api.post(f"{path}/maintenance/jobs/{job_id}/hold", json={"lease-ms": 3_600_000}).json()
    planned = api.get(f"{path}/maintenance").json()
    ended = api.post(
        f"{path}/maintenance/jobs/{job_id}/end", json={"state": "done", "outcome": {"x": 1}}
    ).json()
    once_more = api.post(f"{path}/maintenance/jobs/{job_id}/end", json={"state": "done"}).json()
    too_late = api.post(f"{path}/maintenance/jobs/{job_id}/hold", json={})
    changed = api.post(f"{path}/maintenance/jobs/{job_id}/end", json={"state": "failed"})

    assert (begun["state"], begun["options"]) == ("running", {"a": "b"})
    assert again == begun
    assert error_of(other)[:2] == (409, "JobConflictException")
    assert "expire-snapshots" in error_of(other)[2]
    assert held["leased-until-ms"] > begun["leased-until-ms"]
    assert planned["running"] == "expire-snapshots"
    assert (ended["state"], ended["outcome"]) == ("done", {"x": 1})
    assert once_more == ended
    assert error_of(too_late)[2] == f"Job {job_id} does not run any more: it is done"
    assert error_of(changed)[0] == 409
    assert begin(api, path).status_code == 200


def test_id_of_a_running_job_begins_no_job_of_another_kind(api: httpx.Client, path: str, job_id: str) -> None:
    begin(api, path, id=job_id).raise_for_status()

    other = begin(api, path, id=job_id, job="rewrite-manifests")

    assert error_of(other) == (
        409,
        "JobConflictException",
        f"Job {job_id} is expire-snapshots, not rewrite-manifests: each job needs an id of its own",
    )


def test_options_and_outcomes_are_such_as_clients_can_read(api: httpx.Client, path: str, job_id: str) -> None:
    deep: dict[str, Any] = {}
    for _ in range(60):
        deep = {"a": deep}

    refused = begin(api, path, options={"deep": deep})
    begin(api, path, id=job_id).raise_for_status()
    unended = api.post(
        f"{path}/maintenance/jobs/{job_id}/end", json={"state": "done", "outcome": {"deep": deep}}
    )

    assert error_of(refused)[2] == "Invalid body: options.deep: nested more than 40 levels deep"
    assert error_of(unended)[2] == "Invalid body: outcome.deep: nested more than 40 levels deep"


def test_commits_of_a_job_are_its_snapshots(api: httpx.Client, path: str, job_id: str) -> None:
    begin(api, path, id=job_id).raise_for_status()
    snapshot = {
        "snapshot-id": 41,
        "sequence-number": 1,
        "timestamp-ms": api.get(path).json()["metadata"]["last-updated-ms"],
        "manifest-list": "file:///nowhere/list.avro",
        "summary": {"operation": "append"},
    }
    updates = [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 41},
    ]
    landed = api.post(
        path, json={"requirements": [], "updates": updates}, headers={"X-Icetower-Job": job_id}
    ).raise_for_status()

    ended = api.post(f"{path}/maintenance/jobs/{job_id}/end", json={"state": "done"}).json()

    assert ended["outcome"] == {"snapshot-ids": [41]}
    receipt = api.get(f"/v1/commits/{landed.headers['X-Icetower-Commit-Id']}").json()
    assert receipt["job"] == job_id
    assert [event.get("job") for event in api.get(f"{path}/history").json()["events"]] == [job_id, None]
    assert api.get(f"{path}/maintenance/jobs/{job_id}").json() == ended


@pytest.mark.parametrize("is_name_taken", [False, True])
def test_job_of_a_table_that_is_renamed_meanwhile_is_held_and_ended_by_the_old_name(
    api: httpx.Client, ns: str, path: str, job_id: str, is_name_taken: bool
) -> None:
    begin(api, path, id=job_id).raise_for_status()
    names = [{"namespace": [ns], "name": name} for name in ("t", "t2")]
    api.post("/v1/tables/rename", json={"source": names[0], "destination": names[1]}).raise_for_status()
    if is_name_taken:
        make_table(api, ns, "t")

    held = api.post(f"{path}/maintenance/jobs/{job_id}/hold", json={})
    ended = api.post(f"{path}/maintenance/jobs/{job_id}/end", json={"state": "unsound"})
    once_more = api.post(f"{path}/maintenance/jobs/{job_id}/end", json={"state": "unsound"})
    changed = api.post(f"{path}/maintenance/jobs/{job_id}/end", json={"state": "done"})

    assert (held.status_code, ended.status_code, once_more.json()) == (200, 200, ended.json())
    assert error_of(changed)[2] == f"Job {job_id} does not run any more: it is unsound"
    (job,) = api.get(f"/v1/namespaces/{ns}/tables/t2/maintenance/jobs").json()["jobs"]
    assert (job["id"], job["state"]) == (job_id, "unsound")
    assert error_of(api.get(f"{path}/maintenance/jobs/{job_id}"))[0] == 404


def test_end_of_a_job_is_noted_though_its_table_was_dropped(
    api: httpx.Client, ns: str, path: str, job_id: str
) -> None:
    """It can come back, and what became of the job still counts then."""
    begin(api, path, id=job_id).raise_for_status()
    api.delete(path).raise_for_status()

    ended = api.post(f"{path}/maintenance/jobs/{job_id}/end", json={"state": "unsound"}).json()

    api.post("/v1/undrop", json={"namespace": [ns], "name": "t"}).raise_for_status()
    assert api.get(f"{path}/maintenance/jobs/{job_id}").json() == ended


def test_jobs_come_in_pages_newest_first(api: httpx.Client, path: str) -> None:
    for number in range(5):
        job_id = begin(api, path, options={"number": number}).json()["id"]
        api.post(f"{path}/maintenance/jobs/{job_id}/end", json={"state": "nothing"}).raise_for_status()

    first = api.get(f"{path}/maintenance/jobs", params={"pageSize": "3"}).json()
    second = api.get(
        f"{path}/maintenance/jobs", params={"pageSize": "3", "pageToken": first["next-page-token"]}
    ).json()

    assert [job["options"]["number"] for job in [*first["jobs"], *second["jobs"]]] == [4, 3, 2, 1, 0]
    assert "next-page-token" not in second


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"job": "vacuum"}, "job"),
        ({"job": "expire-snapshots", "id": "1"}, "32 lower-case hexadecimal digits"),
        ({"job": "expire-snapshots", "lease-ms": 999}, "lease-ms"),
        ({"job": "expire-snapshots", "lease-ms": 3_600_001}, "lease-ms"),
        ({"job": "expire-snapshots", "options": {"a": "x" * 70_000}}, "65536 bytes"),
        ({"job": "expire-snapshots", "options": []}, "options"),
        ({}, "job"),
    ],
)
def test_nonsense_begins_no_job(api: httpx.Client, path: str, body: dict[str, Any], words: str) -> None:
    refused = api.post(f"{path}/maintenance/jobs", json=body)

    assert error_of(refused)[:2] == (400, "BadRequestException")
    assert words in error_of(refused)[2]
    assert api.get(f"{path}/maintenance/jobs").json()["jobs"] == []


def test_nonsense_ends_no_job(api: httpx.Client, path: str, job_id: str) -> None:
    begin(api, path, id=job_id).raise_for_status()
    end = f"{path}/maintenance/jobs/{job_id}/end"

    assert "a job ends as something else" in error_of(api.post(end, json={"state": "running"}))[2]
    assert error_of(api.post(end, json={"state": "fine"}))[0] == 400
    assert "65536" in error_of(api.post(end, json={"state": "done", "outcome": {"a": "x" * 70_000}}))[2]
    assert api.get(f"{path}/maintenance/jobs/{job_id}").json()["state"] == "running"


def test_what_is_not_there(api: httpx.Client, ns: str, path: str, job_id: str) -> None:
    begin(api, path, id=job_id).raise_for_status()
    make_table(api, ns, "other")
    make_view(api, ns, "v")
    taken = begin(api, f"/v1/namespaces/{ns}/tables/other", id=job_id)
    assert error_of(taken) == (409, "JobConflictException", f"Job {job_id} is another table's")
    namespace = f"/v1/namespaces/{ns}/tables"

    for missing in ("none", "v"):
        assert error_of(api.get(f"{namespace}/{missing}/maintenance"))[1] == "NoSuchTableException"
        assert error_of(begin(api, f"{namespace}/{missing}"))[1] == "NoSuchTableException"
    for wrong in (f"{path}/maintenance/jobs/{'0' * 32}", f"{namespace}/other/maintenance/jobs/{job_id}"):
        assert error_of(api.get(wrong))[:2] == (404, "NoSuchJobException")
        assert error_of(api.post(f"{wrong}/hold", json={}))[:2] == (404, "NoSuchJobException")
        assert error_of(api.post(f"{wrong}/end", json={"state": "done"}))[:2] == (404, "NoSuchJobException")
    assert error_of(api.get(f"{path}/maintenance/jobs", params={"pageToken": "x"}))[0] == 400
