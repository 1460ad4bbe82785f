"""`icetower table conflicts` against a real server."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.engine.model.table_metadata import TableMetadata, read_table_metadata
from app.fileio.local import LocalFiles
from tests.builders.http_catalog import SCHEMA
from tests.builders.table_files import TableFiles
from tests.unit.cli.conftest import Icetower

Append = Callable[[list[str]], int]
ID_IS_5 = '{"type": "eq", "term": "id", "value": 5}'


@pytest.fixture
def identifier(catalog: RemoteCatalog, namespace: str) -> TableIdentifier:
    """An empty table."""
    made = TableIdentifier(Namespace((namespace,)), "paid")
    catalog.tables.create(made, SCHEMA)
    return made


@pytest.fixture
def append(catalog: RemoteCatalog, identifier: TableIdentifier) -> Append:
    """Append files to the table, and return the snapshot."""
    files = TableFiles(LocalFiles())

    def append(names: list[str]) -> int:
        snapshot = files.snapshot(metadata_of(catalog, identifier), names)
        ref = {"ref-name": "main", "type": "branch", "snapshot-id": snapshot.snapshot_id}
        catalog.tables.commit(
            identifier,
            [
                {"action": "add-snapshot", "snapshot": snapshot.to_object()},
                {"action": "set-snapshot-ref", **ref},
            ],
        )
        return snapshot.snapshot_id

    return append


@pytest.fixture
def name(identifier: TableIdentifier) -> str:
    return f"{identifier.namespace.levels[0]}.paid"


def metadata_of(catalog: RemoteCatalog, identifier: TableIdentifier) -> TableMetadata:
    return read_table_metadata(json.dumps(catalog.tables.load(identifier).metadata).encode())


def test_no_conflict_is_success(icetower: Icetower, append: Append, name: str) -> None:
    base = append(["one"])
    append(["two"])

    told = icetower("table", "conflicts", name, "--base", str(base), "--kind", "append")

    assert told.status == 0
    assert told.out.splitlines() == [
        "No conflict. It can be committed on top of main.",
        (
            "1 snapshot has come onto main since. An append conflicts with nothing, as long as its rows do not "
            "depend on what was read."
        ),
    ]


def test_blind_overwrite_is_no_promise(icetower: Icetower, append: Append, name: str) -> None:
    base = append(["one"])
    append(["two"])

    told = icetower(
        "table", "conflicts", name, "--base", str(base), "--kind", "overwrite", "--filter", ID_IS_5,
        "--isolation", "none",
    )  # fmt: skip

    assert told.status == 0
    assert told.out.startswith("No conflict. It is not known whether it can be committed on top of main.\n")


def test_conflict_has_a_status_of_its_own_and_names_the_snapshot_and_the_file(
    icetower: Icetower, append: Append, name: str
) -> None:
    base = append(["one"])
    winner = append(["two"])

    told = icetower(
        "table", "conflicts", name, "--base", str(base), "--kind", "overwrite", "--filter", ID_IS_5,
        "--removes", "one.parquet", "--row-filter", "false",
    )  # fmt: skip

    assert told.status == 3
    lines = told.out.splitlines()
    assert lines[0] == "1 conflict: it cannot be committed as it is."
    assert lines[1] == "Rows came in that it has not seen: read the table again, and compute it anew."
    assert lines[-1].split()[:5] == ["added", "data", "files", str(winner), "append"]
    assert lines[-1].endswith("/data/two.parquet")


def test_json_is_the_answer_of_the_server(icetower: Icetower, append: Append, name: str) -> None:
    base = append(["one"])
    append(["two"])

    told = icetower(
        "table", "conflicts", name, "--base", str(base), "--kind", "replace-partitions",
        "--operation", '{"partitions": [{"spec-id": 0}]}', "--json",
    )  # fmt: skip

    assert told.status == 3
    assert told.json["would-conflict"] is True
    assert [conflict["kind"] for conflict in told.json["conflicts"]] == ["added-data-files"]


def test_partitions_are_json(icetower: Icetower, append: Append, name: str) -> None:
    base = append(["one"])

    told = icetower(
        "table", "conflicts", name, "--base", str(base), "--kind", "replace-partitions", "--partition", "{}"
    )

    assert (told.status, told.out.splitlines()[1]) == (0, "Nothing has happened on main since.")


def test_many_conflicts_are_cut_off(icetower: Icetower, append: Append, name: str) -> None:
    base = append(["one"])
    append([f"more-{number}" for number in range(120)])

    told = icetower(
        "table", "conflicts", name, "--base", str(base), "--kind", "row-delta", "--refers-to", "one.parquet"
    )

    assert told.status == 3
    assert told.out.startswith("At least 100 conflicts: it cannot be committed as it is.\n")
    assert told.out.rstrip().endswith("… and 80 more; --json shows more of them.")


def test_conflict_without_a_snapshot_shows_its_words(icetower: Icetower, append: Append, name: str) -> None:
    base = append(["one"])

    told = icetower(
        "table", "conflicts", name, "--base", str(base), "--kind", "schema", "--operation", '{"schema-id": 7}'
    )

    assert told.status == 3
    assert told.out.rstrip().endswith("current schema changed: expected id 7 != 0")


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (["--kind", "overwrite", "--filter", "{"], 2, "--filter is not JSON"),
        (["--kind", "overwrite", "--operation", "[1]"], 2, "--operation is not a JSON object"),
        (["--kind", "overwrite"], 1, "operation needs at least one of"),
        (["--kind", "cherry-pick", "--snapshot", "5"], 1, "Snapshot does not exist: 5"),
        (["--kind", "append", "--base", "5"], 1, "Snapshot does not exist: 5"),
        (["--kind", "append", "--branch", "audit"], 1, "Branch or tag does not exist: audit"),
    ],
)
def test_wrong_questions(
    icetower: Icetower, append: Append, name: str, options: list[str], status: int, words: str
) -> None:
    append(["one"])

    told = icetower("table", "conflicts", name, *options)

    assert told.status == status
    assert words in told.err
