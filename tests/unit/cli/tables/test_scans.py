"""`icetower table plan` against a real server."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from app.client.catalog import RemoteCatalog
from app.client.table.scans import ScanCalls, ScanFile, ServerPlan
from app.engine.model.identifiers import Namespace, TableIdentifier
from tests.unit.cli.conftest import SCHEMA, Icetower
from tests.unit.cli.passing_items import PassingItems


@pytest.fixture
def written(server_url: str, namespace: str) -> str:
    """A table of three files in two partitions, of which the last one was written after a tag."""
    rows = pa.table({"id": pa.array([1, 2]), "word": pa.array(["a", "b"])})
    made = RestCatalog("tower", uri=server_url).create_table((namespace, "planned"), rows.schema)
    with made.update_spec() as spec:
        spec.add_identity("word")
    made.append(rows)
    current = made.current_snapshot()
    assert current is not None
    made.manage_snapshots().create_tag(current.snapshot_id, "first").commit()
    made.append(rows.slice(1, 1))
    return f"{namespace}.planned"


def test_plan_is_told_in_plain_words(icetower: Icetower, written: str) -> None:
    told = icetower("table", "plan", written, "--filter", '{"type":"eq","term":"word","value":"b"}').out

    assert "2, 1 of 3 left out" in told
    assert "2 rows" in told
    assert "the rows of 0 files" in told
    assert "1 answer" in told


def test_rows_that_are_still_to_be_asked_are_counted_and_shown(icetower: Icetower, written: str) -> None:
    filter_ = '{"type":"gt","term":"id","value":1}'
    told = icetower("table", "plan", written, "--filter", filter_).out
    files = icetower("table", "plan", written, "--filter", filter_, "--json").json

    assert "the rows of 2 files" in told
    assert [file["residual-filter"] for file in files] == [{"type": "gt", "term": "id", "value": 1}] * 2


def test_earlier_state_is_planned_by_tag_branch_and_id(icetower: Icetower, written: str) -> None:
    assert len(icetower("table", "plan", written, "--json").json) == 3
    assert len(icetower("table", "plan", written, "--snapshot", "first", "--json").json) == 2
    assert len(icetower("table", "plan", written, "--snapshot", "main", "--json").json) == 3
    snapshot_id = icetower("table", "refs", written, "--json").json[0]["snapshot-id"]
    assert icetower("table", "plan", written, "--snapshot", str(snapshot_id), "--select", "id").status == 0


def test_what_cannot_be_planned_is_refused(icetower: Icetower, written: str) -> None:
    assert icetower("table", "plan", written, "--filter", "{").status == 2
    assert icetower("table", "plan", written, "--snapshot", "nope").status == 2
    refused = icetower("table", "plan", written, "--select", "nope")
    assert refused.status == 1
    assert "there is no column named 'nope'" in refused.err


def test_a_split_size_that_is_no_number_leaves_the_plan(
    icetower: Icetower, catalog: RemoteCatalog, namespace: str, written: str
) -> None:
    """A table that comes from elsewhere brings its properties along."""
    identifier = TableIdentifier(Namespace((namespace,)), "planned")
    place = Path(str(catalog.tables.load(identifier).metadata_location).removeprefix("file://"))
    metadata = json.loads(place.read_text(encoding="utf-8"))
    metadata["properties"]["read.split.target-size"] = "128MB"
    other = place.with_name(f"00099-{uuid.uuid4()}.metadata.json")
    other.write_text(json.dumps(metadata), encoding="utf-8")
    catalog.tables.register(identifier, f"file://{other}", overwrite=True)

    told = icetower("table", "plan", written)

    assert told.status == 0
    assert "3, 0 of 3 left out" in told.out
    assert "pieces of work     not known: " in told.out


def test_total_that_is_no_count_is_not_known(
    icetower: Icetower, catalog: RemoteCatalog, namespace: str, written: str
) -> None:
    identifier = TableIdentifier(Namespace((namespace,)), "planned")
    last = catalog.tables.load(identifier).metadata["snapshots"][-1]
    snapshot = last | {
        "snapshot-id": 77,
        "parent-snapshot-id": last["snapshot-id"],
        "sequence-number": last["sequence-number"] + 1,
        "summary": {"operation": "append", "total-data-files": "9" * 5000},
    }
    branch = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 77}
    catalog.tables.commit(identifier, [{"action": "add-snapshot", "snapshot": snapshot}, branch])

    assert "left out" not in icetower("table", "plan", written).out


def test_table_without_data_has_nothing_to_read(
    icetower: Icetower, catalog: RemoteCatalog, namespace: str
) -> None:
    catalog.tables.create(TableIdentifier(Namespace((namespace,)), "bare"), SCHEMA)

    told = icetower("table", "plan", f"{namespace}.bare").out
    assert "0, 0 of 0 left out" in told


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_planned_files_are_counted_or_shown_as_they_come_and_not_kept(
    icetower: Icetower, table: str, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    """A table may have millions of them."""
    items, number = PassingItems(), 1_000
    file = {"content": "data", "file_format": "parquet", "spec_id": 0}
    file |= {"record_count": 2, "file_size_in_bytes": 9}
    planned = (ScanFile(items.item(**file, file_path=f"f{n}"), [], n % 2 == 0) for n in range(number))
    monkeypatch.setattr(ScanCalls, "plan", lambda *_: ServerPlan(planned, answers=7))

    shown = icetower("table", "plan", table, *options)

    assert items.most <= 3
    if options:
        assert [task["data-file"]["file-path"] for task in shown.json] == [f"f{n}" for n in range(number)]
    else:
        assert "2000 rows, 9000 bytes" in shown.out
        assert "the rows of 500 files" in shown.out
        assert "pieces of work     32, of " in shown.out
