"""`icetower table snapshots`, `history`, `diff` and `files` against a real server."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from app.cli.terminal.rendering import FITTED_ROWS
from app.client.catalog import RemoteCatalog
from app.client.table.history import HistoryCalls
from app.engine.model.identifiers import Namespace, TableIdentifier
from tests.unit.cli.conftest import SCHEMA, Icetower
from tests.unit.cli.passing_items import PassingItems


@pytest.fixture
def written(server_url: str, namespace: str) -> str:
    """A table that PyIceberg wrote: two rows, a branch with one more, then another row on main."""
    rows = pa.table({"id": pa.array([1, 2]), "word": pa.array(["a", "b"])})
    made = RestCatalog("tower", uri=server_url).create_table((namespace, "written"), rows.schema)
    with made.update_spec() as spec:
        spec.add_identity("word")
    made.append(rows)
    current = made.current_snapshot()
    assert current is not None
    made.manage_snapshots().create_branch(current.snapshot_id, "audit").commit()
    made.append(rows.slice(0, 1), branch="audit")
    made.append(rows.slice(1, 1))
    return f"{namespace}.written"


def test_snapshots_are_drawn_with_their_branches(icetower: Icetower, written: str) -> None:
    drawn = icetower("table", "snapshots", written).out.splitlines()
    as_json = icetower("table", "snapshots", written, "--json").json

    assert [line.split()[0] for line in drawn[2:]] == ["●", "│", "├─╯", "○"]
    assert drawn[2].split()[1:4] == [str(as_json[0]["snapshot-id"]), "main", "append"]
    assert drawn[3].split()[:4] == ["│", "●", str(as_json[1]["snapshot-id"]), "audit"]
    assert [item["branches"] for item in as_json[:2]] == [["main"], ["audit"]]
    assert len(icetower("table", "snapshots", written, "--json", "--last", "1").json) == 1


@pytest.mark.parametrize("last", ["-1", "9" * 30, "many"])
def test_number_of_snapshots_that_makes_no_sense_is_wrong_usage(
    icetower: Icetower, written: str, last: str
) -> None:
    refused = icetower("table", "snapshots", written, "--last", last)

    assert refused.status == 2
    assert "--last" in refused.err


def test_snapshot_on_no_branch_is_marked(icetower: Icetower, written: str) -> None:
    icetower("table", "drop-ref", written, "audit")

    assert "(on no branch)" in icetower("table", "snapshots", written).out


def test_table_without_snapshots_is_a_remark(
    icetower: Icetower, catalog: RemoteCatalog, namespace: str
) -> None:
    catalog.tables.create(TableIdentifier(Namespace((namespace,)), "new"), SCHEMA)
    name = f"{namespace}.new"

    assert icetower("table", "snapshots", name).err == f"Table {name} has no snapshots yet.\n"
    assert icetower("table", "refs", name).err == f"Table {name} has no branches and tags yet.\n"
    history = icetower("table", "history", name)
    assert history.err == f"Table {name} has no snapshots yet.\n"
    assert "created" in history.out


def test_history_tells_what_was_current_and_who_moved_the_table(icetower: Icetower, written: str) -> None:
    shown = icetower("table", "history", written).out
    as_json = icetower("table", "history", written, "--json").json

    assert " now" in shown
    assert shown.count("anonymous") == len(as_json["events"]) == 6
    assert [event["event"] for event in as_json["events"]][-1] == "created"


def test_times_in_history_lead_back_to_what_stands_beside_them(icetower: Icetower, written: str) -> None:
    shown = icetower("table", "history", written).out.splitlines()
    # Ids are not all of one length: shorter ones are followed by more spaces.
    newest, oldest = (line.split() for line in shown[2:4])

    back = icetower("table", "rollback", written, "--to-time", oldest[1], "--json")
    ahead = icetower("table", "set-ref", written, "main", "--snapshot", newest[0])
    again = icetower("table", "rollback", written, "--to-time", newest[1], "--json")

    assert (back.status, str(back.json["snapshot-id-after"])) == (0, oldest[0])
    assert ahead.status == 0
    assert str(again.json["snapshot-id-after"]) == newest[0]


def test_refs_and_differences_show_the_same_times_as_histories(icetower: Icetower, written: str) -> None:
    moment = icetower("table", "history", written).out.splitlines()[2].split()[1]

    assert moment in icetower("table", "refs", written).out
    assert moment in icetower("table", "diff", written, "audit", "main").out


def test_diff_is_shown_in_numbers_partitions_and_files(icetower: Icetower, written: str) -> None:
    shown = icetower("table", "diff", written, "audit", "main", "--files").out
    as_json = icetower("table", "diff", written, "audit", "main", "--json").json

    assert "(diverged)" in shown
    assert "1 file, 1 row, " in shown
    assert "word=b" in shown
    signs = [line.split()[0] for line in shown.splitlines() if line.endswith(".parquet")]
    assert signs == ["+", "-"]
    assert as_json["relation"] == "diverged"


def test_diff_of_metadata_shows_what_else_changed(icetower: Icetower, server_url: str, written: str) -> None:
    table = RestCatalog("tower", uri=server_url).load_table(written)
    table.transaction().set_properties(owner="ada").commit_transaction()

    shown = icetower("table", "diff", written, "metadata:0", "metadata:6").out

    assert "owner: – → ada" in shown
    assert "partition spec" in shown


def test_files_are_listed_and_filtered(icetower: Icetower, written: str) -> None:
    wanted = json.dumps({"type": "eq", "term": "word", "value": "a"})

    everything: list[dict[str, Any]] = icetower("table", "files", written, "--json").json
    shown = icetower("table", "files", written, "--filter", wanted).out
    nothing = icetower("table", "files", written, "--filter", '{"type":"is-null","term":"word"}')

    assert len(everything) == 3
    assert [line.split()[1] for line in shown.splitlines()[2:]] == ["word=a"]
    assert (nothing.out, nothing.err) == ("", f"No files in main of table {written} that may match.\n")
    assert len(icetower("table", "files", written, "--snapshot", "audit", "--json").json) == 3


def test_a_table_without_rows_has_no_files(
    icetower: Icetower, catalog: RemoteCatalog, namespace: str
) -> None:
    catalog.tables.create(TableIdentifier(Namespace((namespace,)), "empty"), SCHEMA)

    shown = icetower("table", "files", f"{namespace}.empty")

    assert (shown.status, shown.err) == (0, f"No files in main of table {namespace}.empty.\n")
    assert icetower("table", "files", f"{namespace}.empty", "--json").json == []
    assert icetower("table", "files", f"{namespace}.empty", "--snapshot", "audit").status == 1
    assert icetower("table", "files", f"{namespace}.nothing").status == 1


@pytest.mark.parametrize("text", ["{", "[]"])
def test_filter_that_is_no_json_object_is_wrong_usage(icetower: Icetower, text: str) -> None:
    assert icetower("table", "files", "a.b", "--filter", text).status == 2


@pytest.mark.parametrize(("options", "kept"), [((), FITTED_ROWS + 2), (("--json",), 3)])
def test_files_are_shown_as_they_come_and_not_kept(
    icetower: Icetower, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], kept: int
) -> None:
    """A table may have millions of them."""
    items, number = PassingItems(), 2 * FITTED_ROWS
    file = {"content": "data", "partition": {}, "record_count": 1, "file_size_in_bytes": 1}
    monkeypatch.setattr(
        HistoryCalls, "files", lambda *_: (items.item(**file, file_path=f"f{n}") for n in range(number))
    )

    shown = icetower("table", "files", "a.b", *options).out

    assert shown.count("f") >= number
    assert items.most <= kept
