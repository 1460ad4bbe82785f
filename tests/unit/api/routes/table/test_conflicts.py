"""Conflict checks over HTTP; that the verdicts are right is tested against the reference."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest

from app.engine.model.files.manifests import DataFile
from app.engine.model.table_metadata import TableMetadata, read_table_metadata
from app.fileio.local import LocalFiles
from tests.builders.http_catalog import SCHEMA, error_of
from tests.builders.table_files import TableFiles

BY_NOTE = {
    "spec-id": 0,
    "fields": [{"name": "note", "transform": "identity", "source-id": 2, "field-id": 1000}],
}
NOTE_IS_A = {"type": "eq", "term": "note", "value": "a"}


class FilesByNote(TableFiles):
    """Files whose partition is the first letter of their name."""

    def _data_file(self, metadata: TableMetadata, name: str) -> DataFile:
        return replace(super()._data_file(metadata, name), partition=(name[0],))


@dataclass
class Table:
    """A table partitioned by note."""

    api: httpx.Client
    path: str
    files: FilesByNote

    @property
    def metadata(self) -> TableMetadata:
        return read_table_metadata(json.dumps(self.api.get(self.path).json()["metadata"]).encode())

    def append(self, added: Sequence[str] = (), removed: Sequence[str] = ()) -> int:
        """Commit files to main; return the snapshot's id."""
        snapshot = self.files.snapshot(self.metadata, added, removed)
        add = {"action": "add-snapshot", "snapshot": snapshot.to_object()}
        response = self.api.post(
            self.path, json={"requirements": [], "updates": [add, self.set_ref("main", snapshot.snapshot_id)]}
        )
        assert response.status_code == 200, response.text
        return snapshot.snapshot_id

    def set_ref(self, name: str, snapshot_id: int, kind: str = "branch") -> dict[str, Any]:
        return {"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": snapshot_id}

    def data(self, name: str) -> str:
        return self.files.data_path(self.metadata, name)

    def ask(self, base: int | None, **operation: Any) -> httpx.Response:
        """Ask about an operation; in `body_…` what stands beside it."""
        spelled = {name.replace("_", "-"): value for name, value in operation.items()}
        beside = {name.removeprefix("body-"): spelled.pop(name) for name in [*spelled] if "body-" in name}
        return self.api.post(
            f"{self.path}/conflicts", json={"base-snapshot-id": base, "operation": spelled} | beside
        )

    def told(self, base: int | None, **operation: Any) -> Any:
        response = self.ask(base, **operation)
        assert response.status_code == 200, response.text
        return response.json()


@pytest.fixture
def table(api: httpx.Client, ns: str) -> Table:
    """A table with two files."""
    body = {"name": "t", "schema": SCHEMA, "partition-spec": BY_NOTE}
    assert api.post(f"/v1/namespaces/{ns}/tables", json=body).status_code == 200
    made = Table(api, f"/v1/namespaces/{ns}/tables/t", FilesByNote(LocalFiles()))
    made.append(["a1", "b1"])
    return made


def kinds(report: Any) -> list[str]:
    return [conflict["kind"] for conflict in report["conflicts"]]


def test_overwrite_that_collides(table: Table) -> None:
    base = table.metadata.current_snapshot_id
    other = table.append(["b2"])
    winner = table.append(["a2"])
    before = table.api.get(table.path).json()

    told = table.told(base, kind="overwrite", filter=NOTE_IS_A, removed_data_files=[table.data("a1")])

    assert told["conflicts"] == [
        {
            "kind": "added-data-files",
            "message": "Found conflicting files that can contain records matching {type: eq, term: note, value: a}: "
            + table.data("a2"),
            "snapshot-id": winner,
            "file-path": table.data("a2"),
            "spec-id": 0,
            "partition": {"note": "a"},
        }
    ]
    assert told["would-conflict"] is True
    assert told["safe-to-reapply"] is False
    assert told["is-complete"] is True
    assert (told["ref"], told["base-snapshot-id"], told["head-snapshot-id"]) == ("main", base, winner)
    assert [(item["snapshot-id"], item["operation"]) for item in told["snapshots-since"]] == [
        (other, "append"),
        (winner, "append"),
    ]
    assert table.api.get(table.path).json() == before


def test_overwrite_that_does_not(table: Table) -> None:
    base = table.metadata.current_snapshot_id
    table.append(["b2"])

    told = table.told(base, kind="overwrite", filter=NOTE_IS_A, removed_data_files=[table.data("a1")])

    assert (told["would-conflict"], told["safe-to-reapply"], told["conflicts"]) == (False, True, [])
    assert told["reason"] == (
        "1 snapshot has come onto main since. None of them touched what it has read or replaces."
    )


def test_missing_files(table: Table) -> None:
    base = table.metadata.current_snapshot_id
    table.append(["c1"], ["a1"])
    gone = [table.data("a1")]

    assert kinds(table.told(base, kind="delete", removed_data_files=gone)) == ["missing-data-file"]
    assert kinds(table.told(base, kind="rewrite-files", removed_data_files=gone)) == ["missing-data-file"]
    assert kinds(table.told(base, kind="delete", removed_data_files=gone, check_existence=False)) == []
    as_object = [{"file-path": gone[0], "partition": {"note": "a"}, "record-count": 1}]
    assert kinds(table.told(base, kind="delete", removed_data_files=as_object)) == ["missing-data-file"]
    assert kinds(table.told(base, kind="row-delta", isolation="none", referenced_data_files=gone)) == [
        "missing-data-file"
    ]
    vectors = table.told(base, kind="row-delta", isolation="none", deletion_vectors_for=gone)
    assert kinds(vectors) == ["missing-data-file"]


def test_replaced_partitions(table: Table) -> None:
    base = table.metadata.current_snapshot_id
    table.append(["a2", "c1"])

    def told(partition: Any, **more: Any) -> list[str]:
        return kinds(
            table.told(base, kind="replace-partitions", partitions=[{"partition": partition}], **more)
        )

    assert told({"note": "a"}) == ["added-data-files"]
    assert told(["a"]) == ["added-data-files"]
    assert told({"note": "b"}) == []
    assert told({"note": None}) == []
    assert told({"note": "a"}, isolation="snapshot") == []
    assert told({"note": "c"}, isolation="none", append_only=True) == ["partition-not-empty"]
    by_files = [{"file-path": "new", "partition": ["a"]}]
    assert kinds(table.told(base, kind="replace-partitions", added_files=by_files)) == ["added-data-files"]


def test_added_files_are_held_against_the_row_filter(table: Table) -> None:
    bounds = {"keys": [1], "values": ["3C00000000000000"]}
    counts = {"keys": [1], "values": [1]}
    high = {
        "file-path": "new",
        "partition": ["b"],
        "record-count": 1,
        "value-counts": counts,
        "null-value-counts": {"keys": [1], "values": [0]},
        "nan-value-counts": counts,
        "lower-bounds": bounds,
        "upper-bounds": bounds,
    }
    base = table.metadata.current_snapshot_id

    def told(row_filter: Any) -> list[str]:
        report = table.told(
            base, kind="overwrite", row_filter=row_filter, added_files=[high], check_added_files=True
        )
        return kinds(report)

    assert told(NOTE_IS_A) == ["added-file-outside-filter"]
    assert told({"type": "eq", "term": "id", "value": 60}) == []
    assert told({"type": "gt", "term": "id", "value": 60}) == ["added-file-outside-filter"]


def test_other_kinds(table: Table) -> None:
    base = table.metadata.current_snapshot_id
    added = [{"file-path": "new", "partition": ["a"]}]
    table.append(["a2"])

    assert kinds(table.told(base, kind="append", added_files=added)) == []
    assert kinds(table.told(base, kind="properties")) == []
    assert kinds(table.told(base, kind="schema")) == []
    assert kinds(table.told(base, kind="schema", schema_id=3)) == ["schema-changed"]
    assert kinds(table.told(base, kind="partition-spec", spec_id=0)) == []
    assert kinds(table.told(base, kind="partition-spec", last_partition_id=1)) == ["partition-spec-changed"]
    assert kinds(table.told(base, kind="rewrite-manifests", removed_manifests=["gone"])) == [
        "missing-manifest"
    ]
    assert kinds(table.told(base, kind="cherry-pick", snapshot_id=base)) == ["cherry-pick"]
    assert kinds(table.told(base, kind="row-delta", added_files=added)) == ["added-data-files"]


def test_base_that_the_branch_has_left_is_a_conflict(table: Table) -> None:
    first = table.metadata.current_snapshot_id
    assert first is not None
    undone = table.append(["a2"])
    move = {"requirements": [], "updates": [table.set_ref("main", first)]}
    assert table.api.post(table.path, json=move).status_code == 200

    told = table.told(undone, kind="overwrite", removed_data_files=[table.data("a1")])

    assert kinds(told) == ["history"]
    assert "Cannot determine history" in told["conflicts"][0]["message"]
    assert (told["snapshots-since"], told["snapshots-since-count"]) == ([], 0)


def test_table_without_snapshots(api: httpx.Client, ns: str) -> None:
    assert api.post(f"/v1/namespaces/{ns}/tables", json={"name": "e", "schema": SCHEMA}).status_code == 200
    empty = Table(api, f"/v1/namespaces/{ns}/tables/e", FilesByNote(LocalFiles()))

    told = empty.told(None, kind="replace-partitions", partitions=[{"spec-id": 0}])

    assert told["would-conflict"] is False
    assert "head-snapshot-id" not in told
    assert "base-snapshot-id" not in told


def test_many_conflicts_are_cut_off(table: Table) -> None:
    base = table.metadata.current_snapshot_id
    table.append([f"a{number}" for number in range(2, 152)])

    told = table.told(base, kind="overwrite", filter=NOTE_IS_A)

    assert len(told["conflicts"]) == 100
    assert told["is-complete"] is False


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ({"kind": "merge"}, "operation.kind: Input should be one of 'append', 'delete', 'overwrite', "),
        ({}, "operation.kind: Field required"),
        (
            {"kind": "append", "isolation": "snapshot"},
            "operation: unknown field 'isolation'; known are: kind, added-files",
        ),
        ({"kind": "overwrite", "filter": True, "isolation": "weak"}, "operation.isolation: Input should be"),
        ({"kind": "overwrite"}, "needs at least one of filter, row-filter, removed-data-files"),
        ({"kind": "delete"}, "needs at least one of row-filter, removed-data-files"),
        ({"kind": "rewrite-files"}, "needs at least one of removed-data-files, removed-delete-files"),
        ({"kind": "replace-partitions"}, "needs at least one of partitions, added-files"),
        ({"kind": "partition-spec"}, "needs at least one of spec-id, last-partition-id"),
        ({"kind": "rewrite-manifests", "removed-manifests": []}, "operation.removed-manifests"),
        ({"kind": "cherry-pick"}, "operation.snapshot-id: Field required"),
        (
            {"kind": "overwrite", "filter": True, "check-added-files": True},
            "check-added-files needs a row-filter",
        ),
        ({"kind": "overwrite", "filter": {"type": "eq", "term": "colour", "value": 1}}, "colour"),
        ({"kind": "overwrite", "filter": {"type": "like"}}, "like"),
        ({"kind": "overwrite", "filter": True, "removed-data-files": [""]}, "removed-data-files[0]"),
        ({"kind": "overwrite", "filter": True, "removed-data-files": [{"spec-id": 0}]}, "file-path"),
        (
            {"kind": "replace-partitions", "partitions": [{"partition": {"kind": "a"}}]},
            "has [kind], the spec has [note]",
        ),
        ({"kind": "replace-partitions", "partitions": [{}]}, "has 0 values, the spec has [note]"),
        ({"kind": "replace-partitions", "partitions": [{"partition": ["a", "b"]}]}, "has 2 values"),
        ({"kind": "replace-partitions", "partitions": [{"partition": [1]}]}, "note: "),
        (
            {"kind": "replace-partitions", "partitions": [{"spec-id": 7, "partition": []}]},
            "no partition spec 7",
        ),
        (
            {
                "kind": "append",
                "added-files": [
                    {"file-path": "f", "partition": ["a"], "value-counts": {"keys": [1], "values": []}}
                ],
            },
            "as many values as keys",
        ),
        (
            {
                "kind": "append",
                "added-files": [
                    {"file-path": "f", "partition": ["a"], "lower-bounds": {"keys": [], "values": ["00"]}}
                ],
            },
            "as many values as keys",
        ),
        (
            {
                "kind": "append",
                "added-files": [
                    {"file-path": "f", "partition": ["a"], "lower-bounds": {"keys": [1], "values": ["0"]}}
                ],
            },
            "lower-bounds.values[0]",
        ),
    ],
)
def test_what_cannot_be_understood_is_refused(table: Table, operation: dict[str, Any], message: str) -> None:
    body = {"base-snapshot-id": table.metadata.current_snapshot_id, "operation": operation}

    status, kind, words = error_of(table.api.post(f"{table.path}/conflicts", json=body))

    assert (status, kind) == (400, "BadRequestException")
    assert message in words


def test_what_is_not_there(table: Table) -> None:
    base = table.metadata.current_snapshot_id

    assert error_of(table.ask(5, kind="append")) == (
        404,
        "NoSuchSnapshotException",
        "Snapshot does not exist: 5",
    )
    assert error_of(table.ask(base, kind="append", body_ref="audit"))[:2] == (404, "NoSuchRefException")
    assert error_of(table.ask(base, kind="cherry-pick", snapshot_id=5))[0] == 404
    other = table.api.post(f"{table.path}x/conflicts", json={"operation": {"kind": "append"}})
    assert error_of(other)[:2] == (404, "NoSuchTableException")


def test_tags_and_unknown_members_are_refused(table: Table) -> None:
    base = table.metadata.current_snapshot_id
    assert base is not None
    tag = {"requirements": [], "updates": [table.set_ref("v1", base, "tag")]}
    assert table.api.post(table.path, json=tag).status_code == 200

    assert "it is a tag" in error_of(table.ask(base, kind="append", body_ref="v1"))[2]
    assert "unknown field 'bace'" in error_of(table.ask(base, kind="append", body_bace=1))[2]
    assert "it is empty" in error_of(table.api.post(f"{table.path}/conflicts"))[2]


def test_another_branch(table: Table) -> None:
    base = table.metadata.current_snapshot_id
    assert base is not None
    fork = {"requirements": [], "updates": [table.set_ref("audit", base)]}
    assert table.api.post(table.path, json=fork).status_code == 200
    table.append(["a2"])

    assert kinds(table.told(base, kind="overwrite", filter=NOTE_IS_A, body_ref="audit")) == []
    assert kinds(table.told(base, kind="overwrite", filter=NOTE_IS_A)) == ["added-data-files"]


def test_base_that_has_expired_is_known_as_long_as_its_child_is(table: Table) -> None:
    base = table.metadata.current_snapshot_id
    child = table.append(["b2"])
    table.append(["a2"])
    gone = [table.data("a1")]

    def expire(snapshot_id: int | None) -> None:
        remove = {"action": "remove-snapshots", "snapshot-ids": [snapshot_id]}
        assert table.api.post(table.path, json={"requirements": [], "updates": [remove]}).status_code == 200

    expire(base)
    told = table.told(base, kind="overwrite", filter=NOTE_IS_A, removed_data_files=gone)
    expire(child)
    refused = table.ask(base, kind="overwrite", filter=NOTE_IS_A, removed_data_files=gone)

    assert kinds(told) == ["added-data-files"]
    assert error_of(refused)[:2] == (404, "NoSuchSnapshotException")
