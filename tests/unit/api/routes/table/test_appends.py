"""Appending files by reference over HTTP: what lands, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from app.catalog.slots.landing_slots import LandingSlots, QueuedTable
from tests.builders.hostile_footers import lying_file
from tests.builders.http_catalog import error_of, make_table, stale_append
from tests.builders.parquet_files import parquet, with_ids

IDS = {"id": 1, "note": 2}
ROWS = pa.table(
    {"id": [1, 2], "note": ["a", "b"]},
    schema=with_ids(pa.schema([pa.field("id", pa.int64(), nullable=False), ("note", pa.string())]), IDS),
)


class Table:
    """Table t of a namespace, and the folder where its data files are."""

    def __init__(self, api: httpx.Client, ns: str, **properties: str) -> None:
        self.api = api
        self.path = f"/v1/namespaces/{ns}/tables/t"
        self.location = make_table(api, ns, "t")["metadata"]["location"]
        self.folder = Path(self.location.removeprefix("file://"), "data")
        self.folder.mkdir(parents=True)
        if properties:
            self.commit({"action": "set-properties", "updates": properties})

    def put(self, name: str, content: bytes | pa.Table = ROWS) -> str:
        """Put a file into storage and return its location."""
        data = content if isinstance(content, bytes) else parquet(content)
        place = self.folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        return f"{self.location}/data/{name}"

    def append(self, *files: str | Mapping[str, Any], key: str | None = None, **more: Any) -> httpx.Response:
        """Ask for files to be appended; a text is a location."""
        listed = [{"file-path": file} if isinstance(file, str) else file for file in files]
        body = {"files": listed, **{name.replace("_", "-"): value for name, value in more.items()}}
        headers = {} if key is None else {"idempotency-key": key}
        return self.api.post(f"{self.path}/append", json=body, headers=headers)

    def commit(self, *updates: Mapping[str, Any]) -> None:
        """Commit updates."""
        answer = self.api.post(self.path, json={"requirements": [], "updates": updates})
        assert answer.status_code == 200, answer.text

    def metadata(self) -> dict[str, Any]:
        found: dict[str, Any] = self.api.get(self.path).json()["metadata"]
        return found

    def files(self, ref: str = "main") -> list[dict[str, Any]]:
        answer = self.api.get(f"{self.path}/snapshots/{ref}/files").json()
        found: list[dict[str, Any]] = answer["files"]
        return found


@pytest.fixture
def table(api: httpx.Client, ns: str) -> Table:
    return Table(api, ns)


def described(path: str, **changes: Any) -> dict[str, Any]:
    """Return a data file as a client describes it."""
    file = {
        "spec-id": 0,
        "partition": [],
        "content": "data",
        "file-path": path,
        "file-format": "parquet",
        "file-size-in-bytes": len(parquet(ROWS)),
        "record-count": 2,
        "value-counts": {"keys": [1, 2], "values": [2, 2]},
        "lower-bounds": {"keys": [1], "values": ["0100000000000000"]},
        **{name.replace("_", "-"): value for name, value in changes.items()},
    }
    return {"data-file": {name: value for name, value in file.items() if value is not ...}}


def test_answer_has_the_facts_of_the_commit_and_the_snapshot_those_of_the_file(table: Table) -> None:
    answer = table.append(table.put("1.parquet"), summary={"pipeline": "nightly"})

    facts = answer.json()
    metadata = table.metadata()
    (snapshot,) = metadata["snapshots"]
    size = len(parquet(ROWS))
    assert answer.status_code == 200
    assert facts == {
        "snapshot-id": snapshot["snapshot-id"],
        "sequence-number": 1,
        "timestamp-ms": snapshot["timestamp-ms"],
        "branch": "main",
        "metadata-location": table.api.get(table.path).json()["metadata-location"],
        "added-data-files": 1,
        "added-records": 2,
        "added-files-size": size,
    }
    assert metadata["current-snapshot-id"] == facts["snapshot-id"]
    assert snapshot["summary"] == {
        "operation": "append",
        "pipeline": "nightly",
        "added-data-files": "1",
        "added-records": "2",
        "added-files-size": str(size),
        "changed-partition-count": "1",
        "total-records": "2",
        "total-data-files": "1",
        "total-files-size": str(size),
        "total-delete-files": "0",
        "total-position-deletes": "0",
        "total-equality-deletes": "0",
    }
    assert "schema.name-mapping.default" not in metadata["properties"]
    (file,) = table.files()
    assert (file["record-count"], file["file-path"]) == (2, f"{table.location}/data/1.parquet")


def test_file_that_another_program_has_described_is_taken_as_it_is(table: Table) -> None:
    path = table.put("1.parquet")

    assert table.append(described(path)).status_code == 200

    (task,) = table.api.post(f"{table.path}/plan", json={"stats-fields": ["id", "note"]}).json()[
        "file-scan-tasks"
    ]
    assert task["data-file"]["lower-bounds"] == {"keys": [1], "values": ["0100000000000000"]}
    assert task["data-file"]["value-counts"] == {"keys": [1, 2], "values": [2, 2]}


def test_scan_plan_of_one_table_can_be_appended_to_another(table: Table, api: httpx.Client) -> None:
    table.append(table.put("1.parquet"))
    (task,) = api.post(f"{table.path}/plan", json={"stats-fields": ["id", "note"]}).json()["file-scan-tasks"]
    other = table.path.replace("tables/t", "tables/other")
    api.post(table.path.removesuffix("/t"), json={"name": "other", "schema": table.metadata()["schemas"][0]})

    answer = api.post(f"{other}/append", json={"files": [{"data-file": task["data-file"]}]})

    assert answer.status_code == 200, answer.text
    (copied,) = api.post(f"{other}/plan", json={"stats-fields": ["id", "note"]}).json()["file-scan-tasks"]
    assert copied["data-file"] == task["data-file"]


def test_files_without_ids_are_read_by_name_and_leave_a_name_mapping(table: Table) -> None:
    rows = pa.table(
        {"note": ["x"], "id": [7]}, schema=pa.schema([("note", pa.string()), pa.field("id", pa.int64())])
    )

    assert table.append(table.put("1.parquet", rows)).status_code == 200

    mapping = json.loads(table.metadata()["properties"]["schema.name-mapping.default"])
    assert mapping == [{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["note"]}]
    (task,) = table.api.post(f"{table.path}/plan", json={"stats-fields": ["id"]}).json()["file-scan-tasks"]
    assert task["data-file"]["lower-bounds"]["values"] == ["0700000000000000"]


def test_name_mapping_of_the_table_says_what_names_mean(api: httpx.Client, ns: str) -> None:
    mapping = json.dumps([{"field-id": 1, "names": ["id", "nr"]}])
    table = Table(api, ns, **{"schema.name-mapping.default": mapping})

    taken = table.append(table.put("1.parquet", pa.table({"nr": [7]})))
    refused = table.append(table.put("2.parquet", pa.table({"id": [7], "note": ["x"]})))

    assert taken.status_code == 200
    assert table.metadata()["properties"]["schema.name-mapping.default"] == mapping
    assert error_of(refused)[0] == 400
    assert "no column for its column note" in refused.text


def test_branch_is_appended_to_and_main_stays(table: Table) -> None:
    table.append(table.put("1.parquet"))
    table.api.put(f"{table.path}/refs/audit", json={"min-snapshots-to-keep": 3})

    answer = table.append(table.put("2.parquet"), branch="audit")

    assert answer.json()["branch"] == "audit"
    assert len(table.files("audit")) == 2
    assert len(table.files("main")) == 1
    assert table.metadata()["refs"]["audit"]["min-snapshots-to-keep"] == 3


def test_same_file_is_refused_once_it_is_live_and_taken_if_that_is_allowed(table: Table) -> None:
    path = table.put("1.parquet")
    table.append(path)
    other_spelling = path.replace("file://", "file:")

    again = table.append(table.put("2.parquet"), other_spelling)
    twice = table.append(path, path, allow_duplicates=True)

    assert error_of(again)[:2] == (409, "AlreadyExistsException")
    assert other_spelling in again.text
    assert twice.json()["added-data-files"] == 2
    assert [file["file-path"] for file in table.files()] == [path] * 3


def test_file_may_come_back_after_it_was_deleted(table: Table) -> None:
    path = table.put("1.parquet")
    first = table.append(table.put("0.parquet")).json()["snapshot-id"]
    table.append(path)
    table.api.put(f"{table.path}/refs/main", json={"rollback-to": first})

    assert table.append(path).status_code == 200
    assert len(table.files()) == 2


def test_request_that_is_sent_again_under_its_key_has_one_effect(table: Table) -> None:
    path = table.put("1.parquet")

    first = table.append(path, key="append once")
    again = table.append(path, key="append once")

    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    assert len(table.metadata()["snapshots"]) == 1


def test_refusal_is_remembered_under_its_key(table: Table) -> None:
    path = table.put("other.parquet", b"something else")
    first = table.append(path, key="something else")
    table.put("other.parquet")

    again = table.append(path, key="something else")

    assert error_of(first)[0] == 400
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"


def test_requirements_are_those_of_commits(table: Table) -> None:
    head = table.append(table.put("1.parquet")).json()["snapshot-id"]
    at_head = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": head}

    first = table.append(table.put("2.parquet"), requirements=[at_head])
    second = table.append(table.put("3.parquet"), requirements=[at_head])

    assert first.status_code == 200
    assert error_of(second)[:2] == (409, "CommitFailedException")
    assert second.json()["error"]["conflict"]["expected"] == head


OF_STRINGS = with_ids(pa.schema([pa.field("id", pa.string(), nullable=False)]), {"id": 1})
TOO_MUCH = with_ids(
    pa.schema([pa.field("id", pa.int64(), nullable=False), ("x", pa.int64())]), {"id": 1, "x": 9}
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not parquet at all", "it is not a Parquet file"),
        (b"", "it is not a Parquet file"),
        (b"PAR1" + b"\xff" * 30 + b"\xff\xff\xff\x7fPAR1", "is said to be larger than the file"),
        (b"PAR1" + b"\x00" * 30 + b"\x10\x00\x00\x00PAR1", "its Parquet footer cannot be read"),
        (b"PAR1" + b"\x00" * 30 + b"\x10\x00\x00\x00PARE", "encrypted footer"),
        (lying_file("id", values=9), "its column id is said to have 9 values, and the file 1 rows"),
        (pa.table({"id": ["x"]}, schema=OF_STRINGS), "its column id of type String"),
        (pa.table({"id": [1], "x": [1]}, schema=TOO_MUCH), "no column for its column x (field id 9)"),
        (pa.table({"note": ["x"]}), "it has no column id, which the table requires"),
        (pa.table({"id": pa.array([1, None], pa.int64())}), "its column id may have nulls"),
        (pa.table({"id": pa.array([1], pa.uint64())}), "cannot be read as long"),
        (pa.table({"id": [1], "more": [2]}), "no column for its column more"),
        (pa.table({"id": [[1]]}), "its column id is a list, in the table it is a single value"),
        (pa.table({"id": [1], "note": [b"x"]}), "cannot be read as string"),
    ],
)
def test_file_that_does_not_fit_is_named_and_nothing_changes(
    table: Table, content: bytes | pa.Table, message: str
) -> None:
    before = table.api.get(table.path).json()
    path = table.put("1.parquet", content)

    refused = table.append(table.put("0.parquet"), path)

    assert error_of(refused)[:2] == (400, "BadRequestException")
    assert f"Cannot append {path}: " in refused.json()["error"]["message"]
    assert message in refused.json()["error"]["message"]
    assert table.api.get(table.path).json() == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"content": "position-deletes"}, "only data can be appended"),
        ({"content": "rows"}, "content"),
        ({"file_format": "csv"}, "its file-format is not parquet, orc or avro"),
        ({"file_size_in_bytes": 5}, "and file-size-in-bytes says 5"),
        ({"file_size_in_bytes": -5}, "file-size-in-bytes"),
        ({"record_count": -1}, "record-count"),
        ({"record_count": 1.5}, "record-count"),
        (
            {"record_count": 2**63 - 1, "value_counts": ..., "null_value_counts": ...},
            "said to have 9223372036854775807 rows",
        ),
        ({"record_count": ...}, "record-count"),
        ({"spec_id": 7}, "the table has no partition spec 7"),
        ({"partition": [1]}, "it has 1 partition values, and its partition spec 0 fields"),
        ({"sort_order_id": 4}, "the table has no sort order 4"),
        ({"key_metadata": "00"}, "it has key-metadata"),
        ({"first_row_id": 3}, "it has first-row-id"),
        ({"equality_ids": [1]}, "it has equality-ids"),
        ({"split_offsets": [40, 4]}, "split-offsets are not in ascending order"),
        ({"split_offsets": [-4]}, "split-offsets"),
        ({"value_counts": {"keys": [1], "values": [-2]}}, "its value-counts have -2"),
        ({"value_counts": {"keys": [1], "values": []}}, "1 keys and 0 values"),
        ({"value_counts": {"keys": [77], "values": [1]}}, "no column of the table"),
        ({"lower_bounds": {"keys": [1], "values": ["zz"]}}, "hexadecimal digits"),
        ({"lower_bounds": {"keys": [1], "values": ["01"]}}, "its lower-bounds for field id 1"),
        ({"upper_bounds": {"keys": [77], "values": ["01"]}}, "field id 77"),
        ({"value_counts": {"keys": [1, 1], "values": [2, 2]}}, "its value-counts have a field id twice"),
        ({"value_counts": {"keys": [1], "values": [3]}}, "have 3 for field id 1, and its record-count is 2"),
        ({"value_counts": {"keys": [1], "values": [1]}}, "have 1 for field id 1, and its record-count is 2"),
        ({"null_value_counts": {"keys": [1], "values": [3]}}, "its null-value-counts have 3 for field id 1"),
        (
            {"value_counts": ..., "null_value_counts": {"keys": [2], "values": [3]}},
            "its null-value-counts have 3 for field id 2, which has 2 values",
        ),
        ({"null_value_counts": {"keys": [1], "values": [1]}}, "1 for field id 1, which is required"),
        ({"nan_value_counts": {"keys": [1], "values": [1]}}, "1 for field id 1, which is of type long"),
        (
            {
                "lower_bounds": {"keys": [1], "values": ["0900000000000000"]},
                "upper_bounds": {"keys": [1], "values": ["0100000000000000"]},
            },
            "its lower bound for field id 1 is above the upper one",
        ),
        ({"split_offsets": [4, 10**9]}, "its split-offsets are beyond its end"),
    ],
)
def test_description_that_is_wrong_is_refused_and_nothing_changes(
    table: Table, changes: dict[str, Any], message: str
) -> None:
    before = table.api.get(table.path).json()

    refused = table.append(described(table.put("1.parquet"), **changes))

    assert error_of(refused)[:2] == (400, "BadRequestException")
    assert message in refused.json()["error"]["message"]
    assert table.api.get(table.path).json() == before


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "files"),
        ({"files": []}, "files"),
        ({"files": [{}]}, "files[0] needs either file-path or data-file"),
        ({"files": [{"file-path": "$T/1.parquet", "data-file": {}}]}, "data-file"),
        ({"files": [{"file-path": "$T/1.parquet"}, {"file-path": "$T/1.parquet"}]}, "names it twice"),
        ({"files": [{"file-path": "$T/none.parquet"}]}, "$T/none.parquet: there is no such file"),
        ({"files": [{"file-path": "$T"}]}, "there is no such file"),
        ({"files": [{"file-path": "relative.parquet"}]}, "location of a data file"),
        ({"files": [{"file-path": "file:///etc/passwd"}]}, "it is outside warehouse"),
        ({"files": [{"file-path": "$T/../../../../other.parquet"}]}, "'.' or '..' segment"),
        ({"files": [{"file-path": "$T/%2e%2e/x.parquet"}]}, "'.' or '..' segment"),
        ({"files": [{"file-path": "http://127.0.0.1:1/x.parquet"}]}, "it is outside warehouse"),
        ({"files": [{"file-path": "$T/a\x00.parquet"}]}, "control character"),
        ({"files": [{"file-path": "$T/1.parquet"}], "branch": ""}, "branch"),
        ({"files": [{"file-path": "$T/1.parquet"}], "summary": {"total-records": "9"}}, "total-records"),
        ({"files": [{"file-path": "$T/1.parquet"}], "summary": {"operation": "x"}}, "operation"),
        ({"files": [{"file-path": "$T/1.parquet"}], "summary": {"a": 1}}, "summary"),
        ({"files": [{"file-path": "$T/1.parquet"}], "summary": {"a": "x" * 20_000}}, "10000 characters"),
        ({"files": [{"file-path": "$T/1.parquet", "spec-id": 3}]}, "no partition spec 3"),
        ({"files": [{"file-path": "$T/1.parquet", "partition": {"day": 1}}]}, "partition names 'day'"),
        (
            {"files": [{"file-path": "$T/1.parquet"}], "requirements": [{"type": "assert-create"}]},
            "assert-create",
        ),
        ({"files": [{"file-path": "$T/1.parquet"}], "requirements": [{"type": "nope"}]}, "requirement"),
        ({"files": [{"file-path": f"$T/{number}.parquet"} for number in range(1001)]}, "at most 1000"),
        ({"files": [{"file-path": "$T/1.parquet"}], "allow-duplicates": "yes"}, "allow-duplicates"),
    ],
)
def test_request_that_makes_no_sense_is_refused_and_nothing_changes(
    table: Table, body: dict[str, Any], message: str
) -> None:
    table.put("1.parquet")
    before = table.api.get(table.path).json()
    folder = f"{table.location}/data"

    text = json.dumps(body).replace("$T", folder)
    refused = table.api.post(f"{table.path}/append", content=text)

    assert error_of(refused)[:2] == (400, "BadRequestException")
    assert message.replace("$T", folder) in refused.json()["error"]["message"]
    assert table.api.get(table.path).json() == before


def test_what_is_not_there_is_not_found(table: Table, ns: str) -> None:
    path = table.put("1.parquet")
    elsewhere = table.api.post(
        f"/v1/namespaces/{ns}/tables/nope/append", json={"files": [{"file-path": path}]}
    )

    assert error_of(elsewhere)[:2] == (404, "NoSuchTableException")
    assert error_of(table.append(path, branch="nope"))[:2] == (404, "NoSuchRefException")


def test_tag_cannot_be_appended_to(table: Table) -> None:
    table.append(table.put("1.parquet"))
    table.api.put(f"{table.path}/refs/v1", json={"type": "tag"})

    refused = table.append(table.put("2.parquet"), branch="v1")

    assert error_of(refused)[0] == 400
    assert "it is a tag" in refused.text


def test_encrypted_table_is_refused(api: httpx.Client, ns: str) -> None:
    table = Table(api, ns)
    table.commit(
        {"action": "upgrade-format-version", "format-version": 3},
        {"action": "set-properties", "updates": {"encryption.key-id": "k"}},
    )

    refused = table.append(table.put("1.parquet"))

    assert error_of(refused)[:2] == (406, "UnsupportedOperationException")


def test_guard_looks_at_what_is_appended(api: httpx.Client, ns: str) -> None:
    table = Table(api, ns, **{"icetower.guard": "reject"})
    outside = table.folder.parents[1] / "elsewhere"
    outside.mkdir()
    (outside / "1.parquet").write_bytes(parquet(ROWS))

    refused = table.append(f"file://{outside}/1.parquet")

    assert error_of(refused)[0] == 400
    assert "Guard refuses the commit" in refused.text
    assert table.append(table.put("1.parquet")).status_code == 200


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_format_version_is_appended_to_and_numbered(api: httpx.Client, ns: str, version: int) -> None:
    schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
    body = {"name": "t", "schema": schema, "properties": {"format-version": str(version)}}
    location = api.post(f"/v1/namespaces/{ns}/tables", json=body).json()["metadata"]["location"]
    table = Table.__new__(Table)
    table.api, table.path, table.location = api, f"/v1/namespaces/{ns}/tables/t", location
    table.folder = Path(location.removeprefix("file://"), "data")
    for number in range(3):
        assert table.append(table.put(f"{number}.parquet", pa.table({"id": [1, 2]}))).status_code == 200

    metadata = table.metadata()

    numbers = [snapshot.get("sequence-number") for snapshot in metadata["snapshots"]]
    assert numbers == ([None] * 3 if version == 1 else [1, 2, 3])
    assert metadata.get("next-row-id") == (6 if version == 3 else None)
    assert len(table.files()) == 3
    if version == 3:
        tasks = api.post(f"{table.path}/plan", json={}).json()["file-scan-tasks"]
        first_ids = {
            Path(task["data-file"]["file-path"]).name: task["data-file"]["first-row-id"] for task in tasks
        }
        assert first_ids == {"0.parquet": 0, "1.parquet": 2, "2.parquet": 4}


def test_append_asks_before_it_lands_in_the_slot_of_a_writer_that_has_lost(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its writer may be slow: among appends that never wait it would lose for ever."""
    asked: list[QueuedTable] = []
    ask = LandingSlots.ask

    async def noted(slots: LandingSlots, queued: QueuedTable, writer: str) -> None:
        asked.append(queued)
        await ask(slots, queued, writer)

    monkeypatch.setattr(LandingSlots, "ask", noted)
    assert table.append(table.put("1.parquet")).status_code == 200
    assert asked == []
    table.commit({"action": "set-properties", "updates": {"commit.retry.min-wait-ms": "60000"}})
    for _ in range(2):
        assert table.api.post(table.path, json=stale_append(1)).status_code == 409

    assert table.append(table.put("2.parquet")).status_code == 200

    assert [queued.table[1].name for queued in asked] == ["t"]


def test_a_file_that_came_late_is_appended_by_the_same_request(api: httpx.Client, ns: str) -> None:
    table = Table(api, ns)
    path = f"{table.location}/data/late.parquet"
    refused = table.append(path, key=f"nightly {ns}")
    table.put("late.parquet")

    again = table.append(path, key=f"nightly {ns}")

    assert error_of(refused)[0] == 400
    assert "there is no such file" in error_of(refused)[2]
    assert (again.status_code, "idempotent-replayed" in again.headers) == (200, False)
