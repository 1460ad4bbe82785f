"""Scan planning over HTTP: what the answers look like, and which clients could not read otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.builders.http_catalog import error_of, http_catalog, make_namespace, make_table, set_properties

TABLE = "/v1/namespaces/a/tables/t"
ROWS = pa.table(
    {"id": pa.array([1, 2, 3]), "word": pa.array(["x", "y", None]), "size": pa.array([1.5, 2.5, 0.0])}
)


def fill(client: httpx.Client) -> None:
    """Make a table in three partitions, of which one is null."""
    make_namespace(client, "a")
    table = RestCatalog("here", uri=str(client.base_url).rstrip("/")).create_table("a.t", ROWS.schema)
    with table.update_spec() as spec:
        spec.add_identity("word")
    table.append(ROWS)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with http_catalog(tmp_path_factory.mktemp("scans")) as client:
        fill(client)
        yield client


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server whose answers have one file, and that reads everything in the background."""
    with http_catalog(tmp_path_factory.mktemp("small"), scan_page_files=1, scan_submit_bytes=0) as client:
        fill(client)
        yield client


def plan(client: httpx.Client, headers: dict[str, str] | None = None, **body: Any) -> dict[str, Any]:
    request = {key.replace("_", "-"): value for key, value in body.items()}
    response = client.post(f"{TABLE}/plan", json=request, headers=headers)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def files(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [task["data-file"] for task in answer["file-scan-tasks"]]


def test_completed_plan_has_all_lists_and_an_id(api: httpx.Client) -> None:
    answer = plan(api)

    assert answer.keys() == {"status", "plan-id", "plan-tasks", "file-scan-tasks", "delete-files"}
    assert (answer["status"], answer["plan-tasks"], answer["delete-files"]) == ("completed", [], [])
    assert [file["partition"] for file in files(answer)] == [["x"], ["y"], [None]]


def test_table_without_data_has_empty_lists(api: httpx.Client) -> None:
    make_table(api, "a", "bare")

    answer = api.post("/v1/namespaces/a/tables/bare/plan", json={}).json()

    assert (answer["status"], answer["file-scan-tasks"], answer["plan-tasks"]) == ("completed", [], [])


@pytest.mark.parametrize(
    ("filter_", "residuals"),
    [
        (True, [True, True, True]),
        (False, []),
        ({"type": "eq", "term": "word", "value": "x"}, [True]),
        ({"type": "is-null", "term": "word"}, [True]),
        ({"type": "gt", "term": "id", "value": 1}, [{"type": "gt", "term": "id", "value": 1}] * 2),
        (
            {
                "type": "and",
                "left": {"type": "eq", "term": "word", "value": "y"},
                "right": {"type": "gt", "term": "id", "value": 1},
            },
            [{"type": "gt", "term": "id", "value": 1}],
        ),
    ],
)
def test_residual_is_always_there(api: httpx.Client, filter_: Any, residuals: list[Any]) -> None:
    assert [task["residual-filter"] for task in plan(api, filter=filter_)["file-scan-tasks"]] == residuals


def test_metrics_are_sent_for_the_columns_that_are_asked_for(api: httpx.Client) -> None:
    metrics = {
        "column-sizes", "value-counts", "null-value-counts", "nan-value-counts", "lower-bounds", "upper-bounds",
    }  # fmt: skip

    with_none = files(plan(api))[0]
    with_one = files(plan(api, stats_fields=["id"]))[0]

    assert not metrics & with_none.keys()
    assert metrics <= with_one.keys()
    assert with_one["lower-bounds"] == {"keys": [1], "values": ["0100000000000000"]}
    assert with_one["value-counts"] == {"keys": [1], "values": [1]}


def test_case_is_not_minded_if_that_is_asked_for(api: httpx.Client) -> None:
    filter_ = {"type": "eq", "term": "WORD", "value": "x"}

    assert len(files(plan(api, filter=filter_, case_sensitive=False, select=["ID"]))) == 1
    assert api.post(f"{TABLE}/plan", json={"filter": filter_}).status_code == 400


@pytest.mark.parametrize(
    "body",
    [
        {"filter": {"type": "eq", "term": "nope", "value": 1}},
        {"filter": {"type": "eq", "term": "id", "value": "one"}},
        {"filter": {"type": "like", "term": "id", "value": 1}},
        {"filter": 7},
        {"select": ["nope"]},
        {"select": "id"},
        {"stats-fields": ["nope"]},
        {"snapshot-id": 7},
        {"snapshot-id": "7"},
        {"start-snapshot-id": 7},
        {"end-snapshot-id": 7},
        {"min-rows-requested": -1},
        {"case-sensitive": "yes"},
        [],
    ],
)
def test_request_that_makes_no_sense_is_refused(api: httpx.Client, body: Any) -> None:
    status, kind, _ = error_of(api.post(f"{TABLE}/plan", json=body))

    assert (status, kind) == (400, "BadRequestException")


def test_what_is_not_there_is_told_in_the_words_of_the_protocol(api: httpx.Client) -> None:
    missing = "/v1/namespaces/a/tables/nope"

    assert error_of(api.post(f"{missing}/plan", json={}))[:2] == (404, "NoSuchTableException")
    assert error_of(api.post(f"{missing}/tasks", json={"plan-task": "x"}))[:2] == (
        404,
        "NoSuchTableException",
    )
    assert error_of(api.get(f"{missing}/plan/x"))[:2] == (404, "NoSuchTableException")
    assert error_of(api.get(f"{TABLE}/plan/x%00y"))[:2] == (404, "NoSuchPlanIdException")
    assert error_of(api.post(f"{TABLE}/tasks", json={"plan-task": "x"}))[:2] == (
        404,
        "NoSuchPlanTaskException",
    )
    assert error_of(api.post(f"{TABLE}/tasks", json={}))[:2] == (400, "BadRequestException")
    assert api.delete(f"{TABLE}/plan/x").status_code == 204


def finished(client: httpx.Client, plan_id: str) -> dict[str, Any]:
    """Ask until the plan is no longer being made."""
    while True:
        answer: dict[str, Any] = client.get(f"{TABLE}/plan/{plan_id}").json()
        if answer["status"] != "submitted":
            return answer


def test_plan_is_made_in_the_background_and_fetched(small: httpx.Client) -> None:
    submitted = plan(small, filter={"type": "gt", "term": "id", "value": 0})
    assert submitted.keys() == {"status", "plan-id"}
    assert submitted["status"] == "submitted"

    answer = finished(small, submitted["plan-id"])

    assert (answer["status"], answer["file-scan-tasks"], answer["delete-files"]) == ("completed", [], [])
    found, left = [], list(answer["plan-tasks"])
    while left:
        page = small.post(f"{TABLE}/tasks", json={"plan-task": left.pop()}).json()
        assert page.keys() == {"plan-tasks", "file-scan-tasks", "delete-files"}
        left += page["plan-tasks"]
        found += files(page)
    assert sorted(str(file["partition"]) for file in found) == ["['x']", "['y']", "[None]"]


def test_one_key_begins_one_plan(small: httpx.Client) -> None:
    key = {"Idempotency-Key": "0197a8f0-0000-7000-8000-000000000001"}
    filter_ = {"type": "gt", "term": "id", "value": 0}

    first, second = plan(small, key, filter=filter_), plan(small, key, filter=filter_)

    assert first == second
    reused = small.post(f"{TABLE}/plan", json={}, headers=key)
    assert error_of(reused)[:2] == (422, "UnprocessableEntityException")
    again = {"Idempotency-Key": "0197a8f0-0000-7000-8000-000000000002"}
    assert [small.delete(f"{TABLE}/plan/x", headers=again).status_code for _ in range(2)] == [204, 204]


def test_operations_are_advertised(api: httpx.Client) -> None:
    table = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"

    assert {
        f"POST {table}/plan", f"GET {table}/plan/{{plan-id}}", f"DELETE {table}/plan/{{plan-id}}",
        f"POST {table}/tasks",
    } <= set(api.get("/v1/config").json()["endpoints"])  # fmt: skip


def test_table_says_who_plans_its_scans(api: httpx.Client) -> None:
    url = "/v1/namespaces/a/tables/told"
    make_table(api, "a", "told")
    assert "config" not in api.get(url).json()

    assert api.post(url, json=set_properties(**{"scan-planning-mode": "server"})).status_code == 200

    loaded = api.get(url)
    assert loaded.json()["config"] == {"scan-planning-mode": "server"}
    assert api.get(url, headers={"If-None-Match": loaded.headers["etag"]}).status_code == 304
    assert api.post(url, json=set_properties(**{"scan-planning-mode": "Server"})).status_code == 400
    assert api.get(url).json()["config"] == {"scan-planning-mode": "server"}


def test_words_that_stand_elsewhere_are_no_setting(api: httpx.Client) -> None:
    make_table(api, "a", "quoted")
    url = "/v1/namespaces/a/tables/quoted"
    assert api.post(url, json=set_properties(comment='"scan-planning-mode":"server"')).status_code == 200

    assert "config" not in api.get(url).json()


def test_new_table_says_so_at_once(api: httpx.Client) -> None:
    body = {
        "name": "new",
        "schema": {"type": "struct", "fields": []},
        "properties": {"scan-planning-mode": "client"},
    }

    assert api.post("/v1/namespaces/a/tables", json=body).json()["config"] == {"scan-planning-mode": "client"}


def test_warehouse_says_it_for_all_its_tables(api: httpx.Client, tmp_path: Path) -> None:
    body = {
        "name": "planning",
        "root-location": str(tmp_path / "planning"),
        "override-properties": {"scan-planning-mode": "server"},
    }
    assert api.post("/management/v1/warehouses", json=body).status_code in (200, 201)

    config = api.get("/v1/config", params={"warehouse": "planning"}).json()

    assert config["overrides"]["scan-planning-mode"] == "server"
    wrong = {**body, "name": "wrong", "override-properties": {"scan-planning-mode": "auto"}}
    assert api.post("/management/v1/warehouses", json=wrong).status_code == 400
