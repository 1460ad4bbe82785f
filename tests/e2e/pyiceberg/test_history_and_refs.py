"""What a person does with curl to a table's history and branches, and what PyIceberg then sees."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, LongType, NestedField, StringType

ARROW = pa.schema([pa.field("id", pa.int64()), pa.field("word", pa.string()), pa.field("day", pa.date32())])
SCHEMA = Schema(
    NestedField(1, "id", LongType()), NestedField(2, "word", StringType()), NestedField(3, "day", DateType())
)
SPEC = PartitionSpec(
    PartitionField(2, 1000, IdentityTransform(), "word"), PartitionField(3, 1001, IdentityTransform(), "on")
)


def rows(*given: tuple[int, str]) -> pa.Table:
    columns = {
        "id": [number for number, _ in given],
        "word": [word for _, word in given],
        "day": [date(2025, 10, number % 28 + 1) for number, _ in given],
    }
    return pa.table(columns, schema=ARROW)


def ids(table: Table, **scan: Any) -> list[int]:
    return sorted(table.scan(**scan).to_arrow()["id"].to_pylist())


def head(table: Table, branch: str = "main") -> int:
    return table.metadata.refs[branch].snapshot_id


@pytest.fixture(params=[1, 2])
def table(request: pytest.FixtureRequest, catalog: RestCatalog, namespace: str) -> Table:
    """A table with two appends."""
    made: Table = catalog.create_table(
        (namespace, "t"), SCHEMA, partition_spec=SPEC, properties={"format-version": str(request.param)}
    )
    made.append(rows((1, "a"), (2, "b")))
    made.append(rows((3, "c")))
    return made


@pytest.fixture
def curl(catalog: RestCatalog, namespace: str) -> Iterator[httpx.Client]:
    """Calls below the table's path."""
    with httpx.Client(base_url=f"{catalog.uri}/v1/namespaces/{namespace}/tables/t/", timeout=60) as client:
        yield client


def put(curl: httpx.Client, ref: str, **body: Any) -> dict[str, Any]:
    response = curl.put(f"refs/{ref}", json={key.replace("_", "-"): value for key, value in body.items()})
    assert response.status_code == 200, response.text
    receipt: dict[str, Any] = response.json()
    return receipt


def test_branch_made_by_put_is_written_and_read_by_pyiceberg(table: Table, curl: httpx.Client) -> None:
    put(curl, "audit")
    put(curl, "before", type="tag", rollback_to=None, snapshot_id=table.snapshots()[0].snapshot_id)

    table.refresh()
    table.append(rows((4, "d")), branch="audit")

    assert ids(table) == [1, 2, 3]
    assert ids(table.refresh(), snapshot_id=head(table, "audit")) == [1, 2, 3, 4]
    assert ids(table, snapshot_id=head(table, "before")) == [1, 2]
    assert table.metadata.refs["before"].snapshot_ref_type == "tag"


def test_after_a_rollback_pyiceberg_reads_old_rows_and_writes_on(table: Table, curl: httpx.Client) -> None:
    first, second = (snapshot.snapshot_id for snapshot in table.snapshots())

    receipt = put(curl, "main", rollback_to=first, expected_snapshot_id=second)

    assert ids(table.refresh()) == [1, 2]
    assert receipt["metadata-location-after"] == table.metadata_location
    table.append(rows((9, "z")))
    assert ids(table.refresh()) == [1, 2, 9]


def test_rollback_to_a_time_is_the_snapshot_of_that_time(table: Table, curl: httpx.Client) -> None:
    first = table.metadata.snapshot_log[0]
    later = table.metadata.snapshot_log[1].timestamp_ms

    put(curl, "main", timestamp_ms=(first.timestamp_ms + later) // 2)

    assert head(table.refresh()) == first.snapshot_id


def test_cherry_picked_rows_are_read_by_pyiceberg(table: Table, curl: httpx.Client) -> None:
    put(curl, "audit")
    table.refresh()
    table.append(rows((4, "d"), (5, "e")), branch="audit")
    table.append(rows((6, "f")))
    picked = head(table.refresh(), "audit")

    receipt = put(curl, "main", cherry_pick=picked)

    table.refresh()
    assert ids(table) == [1, 2, 3, 4, 5, 6]
    made = table.current_snapshot()
    assert made is not None
    assert made.snapshot_id == receipt["snapshot-id-after"]
    assert made.summary is not None
    assert made.summary["source-snapshot-id"] == str(picked)
    assert (made.summary["added-records"], made.summary["total-records"]) == ("2", "6")
    assert made.summary["total-data-files"] == str(len(table.inspect.files()))
    again = curl.put("refs/main", json={"cherry-pick": picked})
    assert (again.status_code, again.json()["error"]["type"]) == (400, "ValidationException")
    table.append(rows((7, "g")))
    table.delete("id = 4")
    assert ids(table.refresh()) == [1, 2, 3, 5, 6, 7]


def test_child_of_the_head_is_fast_forwarded_to(table: Table, curl: httpx.Client) -> None:
    put(curl, "audit")
    table.refresh()
    table.append(rows((4, "d")), branch="audit")
    picked = head(table.refresh(), "audit")

    receipt = put(curl, "main", cherry_pick=picked)

    assert receipt["snapshot-id-after"] == picked
    assert ids(table.refresh()) == [1, 2, 3, 4]


def test_staged_snapshot_is_published_once(table: Table, curl: httpx.Client) -> None:
    put(curl, "stage")
    table.refresh()
    table.append(rows((4, "d")), snapshot_properties={"wap.id": "nightly"}, branch="stage")
    curl.delete("refs/stage")
    table.append(rows((5, "e")))

    put(curl, "main", publish="nightly")

    assert ids(table.refresh()) == [1, 2, 3, 4, 5]
    current = table.current_snapshot()
    assert current is not None
    assert current.summary is not None
    assert current.summary["published-wap-id"] == "nightly"
    again = curl.put("refs/main", json={"publish": "nightly"})
    assert again.status_code == 400


def test_files_are_those_that_pyiceberg_finds(table: Table, curl: httpx.Client) -> None:
    table.delete("id = 1")
    inspected = table.inspect.files().to_pylist()

    listed = curl.get("snapshots/main/files").json()["files"]

    assert {(file["file-path"], file["record-count"], file["file-size-in-bytes"]) for file in listed} == {
        (file["file_path"], file["record_count"], file["file_size_in_bytes"]) for file in inspected
    }
    assert {(file["partition"]["word"], file["partition"]["on"]) for file in listed} == {
        (file["partition"]["word"], str(file["partition"]["on"]))
        for file in table.inspect.entries()["data_file"].to_pylist()
    } - {("a", "2025-10-02")}


@pytest.mark.parametrize(
    "table", [2], indirect=True
)  # PyIceberg cannot write on to such a table of version 1
def test_partitions_of_a_dropped_column_are_known_after_old_schemas_have_gone(
    table: Table, curl: httpx.Client
) -> None:
    with table.update_spec() as spec:
        spec.remove_field("on")
    with table.update_schema() as schema:
        schema.delete_column("day")
    table.append(pa.table({"id": [4], "word": ["d"]}))
    wish = {"older-than-ms": 4_000_000_000_000, "retain-last": 1, "clean-expired-metadata": True}
    expired = curl.post("expire", json=wish)
    assert len(expired.json()["snapshots"]) == 2, expired.text

    found = curl.get("snapshots/main/files").json()["files"]

    days = [file["partition"].get("on") for file in found]
    assert sorted(map(str, days)) == ["2025-10-02", "2025-10-03", "2025-10-04", "None"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"type": "eq", "term": "word", "value": "b"}, ["b"]),
        ({"type": "gt", "term": "id", "value": 1}, ["b", "c"]),
        ({"type": "lt", "term": "day", "value": "2025-10-03"}, ["a"]),
        ({"type": "is-null", "term": "word"}, []),
        (True, ["a", "b", "c"]),
    ],
)
def test_filter_keeps_the_files_that_may_match(
    table: Table, curl: httpx.Client, wanted: object, found: list[str]
) -> None:
    listed = curl.get("snapshots/main/files", params={"filter": json.dumps(wanted)}).json()["files"]

    assert sorted(file["partition"]["word"] for file in listed) == found


def test_pages_of_files_go_on_where_the_last_ended_though_the_branch_moves(
    table: Table, curl: httpx.Client
) -> None:
    everything = [file["file-path"] for file in curl.get("snapshots/main/files").json()["files"]]
    snapshot = head(table)

    first = curl.get(f"snapshots/{snapshot}/files", params={"pageSize": 2}).json()
    table.append(rows((8, "h")))
    second = curl.get(
        f"snapshots/{snapshot}/files", params={"pageSize": 2, "pageToken": first["next-page-token"]}
    ).json()

    assert [file["file-path"] for page in (first, second) for file in page["files"]] == everything
    assert "next-page-token" not in second
    stale = curl.get("snapshots/main/files", params={"pageToken": first["next-page-token"]})
    assert stale.status_code == 400


def test_diff_has_the_numbers_that_can_be_computed(table: Table, curl: httpx.Client) -> None:
    before = {file["file_path"]: file for file in table.inspect.files().to_pylist()}
    start = head(table)
    table.append(rows((4, "c"), (5, "e")))
    table.delete("word = 'b'")
    after = {file["file_path"]: file for file in table.refresh().inspect.files().to_pylist()}
    added, removed = after.keys() - before.keys(), before.keys() - after.keys()

    diff = curl.get("diff", params={"from": start, "to": "main"}).json()
    backwards = curl.get("diff", params={"from": "main", "to": start}).json()

    for totals, paths, files in ((diff["added"], added, after), (diff["removed"], removed, before)):
        assert totals == {
            "data-files": len(paths),
            "delete-files": 0,
            "rows": sum(files[path]["record_count"] for path in paths),
            "deletes": 0,
            "bytes": sum(files[path]["file_size_in_bytes"] for path in paths),
        }
    assert {file["file-path"] for file in diff["files"] if file["change"] == "added"} == added
    assert {part["partition"]["word"] for part in diff["partitions"]} == {"b", "c", "e"}
    assert diff["relation"] == "descendant"
    assert diff["snapshots"] == [item.snapshot_id for item in table.snapshots()[2:]]
    assert (backwards["added"], backwards["removed"]) == (diff["removed"], diff["added"])
    assert backwards["relation"] == "ancestor"


def test_diff_of_metadata_versions_tells_what_else_changed(table: Table, curl: httpx.Client) -> None:
    with table.update_schema() as update:
        update.add_column("note", StringType())
        update.rename_column("word", "text")
    with table.transaction() as transaction:
        transaction.set_properties(owner="ada")
    with table.update_spec() as spec:
        spec.remove_field("on")

    diff = curl.get("diff", params={"from": "metadata:2", "to": table.metadata_location}).json()

    assert [change["change"] for change in diff["schema-changes"]] == ["column-renamed", "column-added"]
    assert diff["metadata"]["properties"] == {"owner": {"to": "ada"}}
    assert len(diff["metadata"]["partition-spec"]["from"]["fields"]) == 2
    assert diff["files"] == []
    assert diff["relation"] == "same"


def test_history_tells_who_moved_the_table_and_what_was_current(table: Table, curl: httpx.Client) -> None:
    first, second = (snapshot.snapshot_id for snapshot in table.snapshots())
    receipt = put(curl, "main", rollback_to=first)

    history = curl.get("history").json()

    assert [entry["snapshot-id"] for entry in history["current"]] == [first, second, first]
    assert "until-ms" not in history["current"][0]
    assert [event["event"] for event in history["events"]] == ["committed"] * 3 + ["created"]
    assert history["events"][0]["sequence"] == receipt["sequence"]
    assert history["events"][0]["metadata-location-after"] == receipt["metadata-location-after"]
    snapshots = curl.get("snapshots").json()["snapshots"]
    assert [(item["snapshot-id"], item["branches"], item["is-current"]) for item in snapshots] == [
        (second, [], False),
        (first, ["main"], True),
    ]
