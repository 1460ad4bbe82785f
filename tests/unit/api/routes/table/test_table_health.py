"""Health and profiles over HTTP; what they say of files is tested with real ones, by Spark and PyIceberg."""

from __future__ import annotations

import httpx
import pytest

from tests.builders.http_catalog import error_of, make_table, make_view
from tests.unit.api.routes.table.test_refs import append


def test_health_of_an_empty_table(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")

    answer = api.get(f"/v1/namespaces/{ns}/tables/t/health").json()

    assert (answer["namespace"], answer["table"], answer["severity"], answer["findings"]) == (
        [ns],
        "t",
        "ok",
        [],
    )
    assert "snapshot-id" not in answer
    assert answer["files"]["data-files"] == 0
    assert [group.get("below-bytes") for group in answer["files"]["size-histogram"]][:2] == [1 << 20, 8 << 20]
    assert answer["files"]["size-histogram"][-1] == {"files": 0}
    assert answer["metadata"]["statistics"] == {"state": "missing"}
    assert answer["activity"]["attempts-a-commit"] == 1.0


def test_a_load_is_the_last_read(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")
    path = f"/v1/namespaces/{ns}/tables/t"
    before = api.get(f"{path}/health").json()
    api.get(path)

    after = api.get(f"{path}/health").json()

    assert "last-read-ms" not in before["activity"]
    assert before["looked-at-ms"] <= after["activity"]["last-read-ms"] <= after["looked-at-ms"]


def test_profile_of_an_empty_table(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")

    answer = api.get(f"/v1/namespaces/{ns}/tables/t/profile").json()

    assert (answer["data-files"], answer["rows"], answer["delete-files"]) == (0, 0, 0)
    assert [(column["name"], column["type"]) for column in answer["columns"]] == [
        ("id", "long"),
        ("note", "string"),
    ]
    assert all(
        "lower-bound" not in column and column["value-count-files"] == 0 for column in answer["columns"]
    )


@pytest.mark.parametrize("what", ["health", "profile"])
@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("?snapshot-id=1&ref=main", 400, "both snapshot-id and ref"),
        ("?snapshot-id=head", 400, "Invalid snapshot-id 'head': it must be a whole number"),
        ("?snapshot-id=12345678901234567890", 400, "Invalid snapshot-id"),
        ("?snapshot-id=77", 404, "77"),
        ("?ref=audit", 404, "audit"),
    ],
)
def test_states_that_are_not_there_are_refused(
    api: httpx.Client, ns: str, what: str, query: str, status: int, message: str
) -> None:
    make_table(api, ns, "t")

    response = api.get(f"/v1/namespaces/{ns}/tables/t/{what}{query}")

    assert response.status_code == status
    assert message in error_of(response)[2]


@pytest.mark.parametrize("what", ["health", "profile"])
def test_views_and_missing_tables_are_404(api: httpx.Client, ns: str, what: str) -> None:
    make_view(api, ns, "v")

    for name in ("v", "nope"):
        response = api.get(f"/v1/namespaces/{ns}/tables/{name}/{what}")
        assert error_of(response)[:2] == (404, "NoSuchTableException")


def test_a_manifest_list_that_is_gone_is_named(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")
    snapshot_id = append(api, ns)

    health = api.get(f"/v1/namespaces/{ns}/tables/t/health").json()
    profile = api.get(f"/v1/namespaces/{ns}/tables/t/profile")

    assert health["severity"] == "critical"
    assert f"snap-{snapshot_id}.avro" in health["findings"][0]["message"]
    assert profile.status_code == 404
    assert f"snap-{snapshot_id}.avro" in error_of(profile)[2]


def test_warehouse_lists_unreadable_tables_first_and_pages_go_on(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")
    append(api, ns)
    make_table(api, ns, "we'll see")

    found, token = [], ""
    while True:
        page = api.get("/v1/default/health", params={"pageSize": 1, "pageToken": token}).json()
        found += page["tables"]
        token = page.get("next-page-token")
        if token is None:
            break

    whole = api.get("/v1/health").json()["tables"]
    assert [(table["namespace"], table["table"]) for table in found] == [
        (table["namespace"], table["table"]) for table in whole
    ]
    ours = {table["table"]: table for table in whole if table["namespace"] == [ns]}
    assert ours["t"]["severity"] == "critical"
    assert ours["t"]["findings"][0]["code"] == "unreadable"
    assert ours["we'll see"]["severity"] == "ok"
    ranks = [table["severity"] == "critical" for table in whole]
    assert ranks == sorted(ranks, reverse=True)
    assert all("files" not in table for table in whole)


@pytest.mark.parametrize("query", ["pageToken=nope", "pageSize=0", "pageSize=x"])
def test_pages_that_make_no_sense_are_refused(api: httpx.Client, query: str) -> None:
    assert api.get(f"/v1/health?{query}").status_code == 400
