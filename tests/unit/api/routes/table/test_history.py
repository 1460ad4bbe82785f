"""Snapshots, files, history and differences over HTTP; what files say is tested with real ones, by PyIceberg."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import httpx
import pytest

from app.api.responses.paging import page_token
from tests.builders.http_catalog import SCHEMA, error_of, make_table, set_properties
from tests.unit.api.routes.table.test_refs import append


@pytest.fixture
def table(api: httpx.Client, ns: str) -> str:
    """The path of a table with three snapshots on main and one on a branch that left after the first."""
    make_table(api, ns, "t")
    first = append(api, ns)
    second = append(api, ns, parent=first)
    append(api, ns, "audit", parent=first)
    append(api, ns, parent=second)
    return f"/v1/namespaces/{ns}/tables/t"


def ids(api: httpx.Client, table: str) -> list[int]:
    """Return the snapshots, oldest first."""
    return [item["snapshot-id"] for item in api.get(table).json()["metadata"]["snapshots"]]


def test_snapshots_come_newest_first_with_refs_and_branches(api: httpx.Client, table: str) -> None:
    api.put(f"{table}/refs/v1", json={"type": "tag", "snapshot-id": ids(api, table)[0]})

    listed = api.get(f"{table}/snapshots").json()["snapshots"]

    assert [item["snapshot-id"] for item in listed] == ids(api, table)[::-1]
    assert [item["refs"] for item in listed] == [["main"], ["audit"], [], ["v1"]]
    assert [sorted(item["branches"]) for item in listed] == [["main"], ["audit"], ["main"], ["audit", "main"]]
    assert [item["is-current"] for item in listed] == [True, False, False, False]
    assert listed[0]["summary"] == {"operation": "append"}


def test_pages_of_snapshots_go_on_where_the_last_ended(api: httpx.Client, ns: str, table: str) -> None:
    expected = ids(api, table)[::-1]
    first = api.get(f"{table}/snapshots", params={"pageSize": 2}).json()
    append(api, ns, parent=expected[0])
    second = api.get(
        f"{table}/snapshots", params={"pageSize": 2, "pageToken": first["next-page-token"]}
    ).json()

    assert [item["snapshot-id"] for page in (first, second) for item in page["snapshots"]] == expected
    assert "next-page-token" not in second


def test_page_of_snapshots_ends_behind_very_long_names_of_branches(
    api: httpx.Client, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.catalog.history.MOST_IN_NAMES", 9)
    pages = [api.get(f"{table}/snapshots").json()]
    while token := pages[-1].get("next-page-token"):
        pages.append(api.get(f"{table}/snapshots", params={"pageToken": token}).json())

    counts = [len(page["snapshots"]) for page in pages]
    assert [item["snapshot-id"] for page in pages for item in page["snapshots"]] == ids(api, table)[::-1]
    assert counts == [2, 2]


def test_token_of_another_listing_is_refused(api: httpx.Client, table: str) -> None:
    token = api.get(f"{table}/snapshots", params={"pageSize": 1}).json()["next-page-token"]

    assert error_of(api.get(f"{table}/history", params={"pageToken": token}))[0] == 400


@pytest.mark.parametrize("place", ["x", "1 2", "1 2 x", "1 2 3 4", "9" * 40, "٣ 1 1"])
def test_token_that_somebody_made_up_is_refused(api: httpx.Client, ns: str, table: str, place: str) -> None:
    def asked(made_up: str) -> httpx.Response:
        # The listing of the default warehouse, which is the first one.
        token = page_token(made_up, f"snapshots 1 {ns}\x1ft")
        return api.get(f"{table}/snapshots", params={"pageToken": token})

    assert asked("1 2 3").status_code == 200
    assert error_of(asked(place))[0] == 400


def test_snapshot_is_loaded_by_its_id_or_by_a_ref(api: httpx.Client, table: str) -> None:
    snapshot_id = ids(api, table)[2]

    by_ref = api.get(f"{table}/snapshots/audit").json()

    assert by_ref["snapshot-id"] == snapshot_id
    assert api.get(f"{table}/snapshots/{snapshot_id}").json() == by_ref


def test_ref_whose_name_is_a_number_is_found_unless_a_snapshot_has_that_id(
    api: httpx.Client, table: str
) -> None:
    first, second, *_ = ids(api, table)
    for name in ("12", str(second)):
        api.put(f"{table}/refs/{name}", json={"snapshot-id": first})

    assert api.get(f"{table}/snapshots/12").json()["snapshot-id"] == first
    assert api.get(f"{table}/snapshots/{second}").json()["snapshot-id"] == second


@pytest.mark.parametrize(
    "path", ["snapshots/1", "snapshots/nope", "snapshots/nope/files", "diff?to=nope", "diff?from=1"]
)
def test_snapshot_that_is_not_there_is_not_found(api: httpx.Client, table: str, path: str) -> None:
    assert error_of(api.get(f"{table}/{path}"))[:2] == (404, "NoSuchSnapshotException")


@pytest.mark.parametrize(
    "path", ["metadata:99", "metadata:", "metadata:x", "file:///etc/00001-a.metadata.json"]
)
def test_version_that_the_table_never_had_is_not_found(api: httpx.Client, table: str, path: str) -> None:
    assert error_of(api.get(f"{table}/diff", params={"to": path}))[:2] == (404, "NotFoundException")


@pytest.mark.parametrize("path", ["snapshots", "snapshots/1", "snapshots/1/files", "history", "diff", "refs"])
def test_missing_table_is_not_found(api: httpx.Client, ns: str, path: str) -> None:
    assert error_of(api.get(f"/v1/namespaces/{ns}/tables/nope/{path}"))[:2] == (404, "NoSuchTableException")


def test_manifest_list_that_is_gone_is_named(api: httpx.Client, table: str) -> None:
    status, kind, message = error_of(api.get(f"{table}/snapshots/main/files"))

    assert (status, kind) == (404, "NotFoundException")
    assert f"snap-{ids(api, table)[-1]}.avro" in message


@pytest.mark.parametrize(
    "text", ["{", "7", '{"type":"eq"}', '{"type":"eq","term":"nope","value":1}', "1" * 30_001]
)
def test_filter_that_is_none_is_refused(api: httpx.Client, table: str, text: str) -> None:
    assert error_of(api.get(f"{table}/snapshots/main/files", params={"filter": text}))[:2] == (
        400,
        "BadRequestException",
    )


def test_history_has_every_event_and_what_was_current(api: httpx.Client, table: str) -> None:
    first, second, _, last = ids(api, table)
    api.put(f"{table}/refs/main", json={"rollback-to": second})

    page = api.get(f"{table}/history", params={"pageSize": 2}).json()
    rest = api.get(f"{table}/history", params={"pageToken": page["next-page-token"]}).json()

    assert [entry["snapshot-id"] for entry in page["current"]] == [second, last, second, first]
    reigns = page["current"]
    assert [entry.get("until-ms") for entry in reigns] == [
        None,
        *(entry["since-ms"] for entry in reigns[:-1]),
    ]
    events = [*page["events"], *rest["events"]]
    assert [event["event"] for event in events] == ["committed"] * 5 + ["created"]
    assert [event["sequence"] for event in events] == sorted(
        (event["sequence"] for event in events), reverse=True
    )
    assert "current" not in rest
    for newer, older in pairwise(events):
        assert newer["metadata-location-before"] == older["metadata-location-after"]


def diff(api: httpx.Client, ns: str, before: str, after: str | None = None) -> dict[str, Any]:
    params = {"from": before, **({} if after is None else {"to": after})}
    response = api.get(f"/v1/namespaces/{ns}/tables/t/diff", params=params)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def test_versions_of_metadata_are_compared_by_number_and_by_location(api: httpx.Client, ns: str) -> None:
    made = make_table(api, ns, "t")
    api.post(f"/v1/namespaces/{ns}/tables/t", json=set_properties(owner="ada"))
    wider = {
        **SCHEMA,
        "fields": [*SCHEMA["fields"], {"id": 3, "name": "extra", "type": "int", "required": False}],
    }
    updates = [
        {"action": "add-schema", "schema": wider, "last-column-id": 3},
        {"action": "set-current-schema", "schema-id": -1},
    ]
    api.post(f"/v1/namespaces/{ns}/tables/t", json={"requirements": [], "updates": updates})

    by_number = diff(api, ns, "metadata:0", "metadata:2")
    by_location = diff(api, ns, made["metadata-location"], "metadata:2")
    last = api.get(f"/v1/namespaces/{ns}/tables/t/diff", params={"to": "metadata:2"}).json()

    assert by_number == by_location
    assert by_number["metadata"] == {"properties": {"owner": {"to": "ada"}}}
    assert by_number["schema-changes"] == [
        {"change": "column-added", "field-id": 3, "name": "extra", "type": "int", "required": False}
    ]
    assert by_number["relation"] == "same"
    assert by_number["added"] == {"data-files": 0, "delete-files": 0, "rows": 0, "deletes": 0, "bytes": 0}
    assert last["metadata"] == {}
    assert last["from"]["metadata-location"].rsplit("/", 1)[-1].startswith("00001-")
