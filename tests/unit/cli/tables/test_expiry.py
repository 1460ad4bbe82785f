"""`icetower table expire` against a real server."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from app.client.answers import ExpiredSnapshots
from app.client.catalog import RemoteCatalog
from app.client.table.tables import TableCalls
from app.engine.model.identifiers import Namespace, TableIdentifier
from tests.unit.cli.conftest import Icetower


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def grown(catalog: RemoteCatalog, table: str) -> str:
    """The table with a second snapshot, and a tag on neither."""
    identifier = identifier_of(table)
    metadata = catalog.tables.load(identifier).metadata
    snapshot = {
        "snapshot-id": 78,
        "parent-snapshot-id": 77,
        "sequence-number": 2,
        "timestamp-ms": metadata["last-updated-ms"] + 1,
        "manifest-list": f"{metadata['location']}/metadata/list-2.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    catalog.tables.commit(
        identifier,
        [
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 78},
        ],
    )
    return table


def identifier_of(table: str) -> TableIdentifier:
    namespace, _, name = table.rpartition(".")
    return TableIdentifier(Namespace((namespace,)), name)


def snapshot_ids(catalog: RemoteCatalog, table: str) -> list[int]:
    return [item["snapshot-id"] for item in catalog.tables.load(identifier_of(table)).metadata["snapshots"]]


def test_dry_run_shows_what_would_go_and_stops(
    icetower: Icetower, catalog: RemoteCatalog, grown: str
) -> None:
    shown = icetower("table", "expire", grown, "--older-than", "0s", "--dry-run")

    assert shown.status == 0
    assert "77  " in shown.out
    assert "manifest lists" in shown.out
    assert snapshot_ids(catalog, grown) == [77, 78]


def test_dry_run_as_json_is_the_servers_answer(icetower: Icetower, grown: str) -> None:
    shown = icetower("table", "expire", grown, "--older-than", "2999-01-01", "--dry-run", "--json").json

    assert shown["dry-run"] is True
    assert [item["snapshot-id"] for item in shown["snapshots"]] == [77]
    assert shown["files"]["data-files"]["count"] == 0


def test_snapshots_go_after_a_yes(
    icetower: Icetower, catalog: RemoteCatalog, grown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))

    done = icetower("table", "expire", grown, "--older-than", "0s", "--grace", "1d")

    assert done.status == 0
    assert f"Expired 1 snapshot of table {grown}; files are deleted after " in done.out
    assert snapshot_ids(catalog, grown) == [78]


def test_what_becomes_old_enough_while_it_asks_stays(
    icetower: Icetower, grown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[dict[str, Any], ExpiredSnapshots]] = []
    expire = TableCalls.expire

    def noted(tables: TableCalls, identifier: TableIdentifier, **asked: Any) -> ExpiredSnapshots:
        answer = expire(tables, identifier, **asked)
        calls.append((asked, answer))
        return answer

    monkeypatch.setattr(TableCalls, "expire", noted)
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    icetower("table", "expire", grown, "--older-than", "0s")

    (_, shown), (asked, _) = calls
    assert shown.as_of_ms is not None
    assert asked["as_of_ms"] == shown.as_of_ms


def test_without_a_terminal_yes_is_needed(icetower: Icetower, catalog: RemoteCatalog, grown: str) -> None:
    refused = icetower("table", "expire", grown, "--older-than", "0s")
    assert (refused.status, snapshot_ids(catalog, grown)) == (2, [77, 78])
    assert "--yes" in refused.err

    done = icetower("table", "expire", grown, "--older-than", "0s", "--yes", "--json", "--cleanup", "none")

    assert [item["snapshot-id"] for item in done.json["snapshots"]] == [77]
    assert "files-deleted-after-ms" not in done.json


def test_nothing_to_expire_is_a_remark(icetower: Icetower, grown: str) -> None:
    for extra in ([], ["--yes"], ["--dry-run"]):
        outcome = icetower("table", "expire", grown, *extra)

        assert (outcome.status, outcome.out) == (0, "")
        assert outcome.err == f"Nothing of table {grown} is to expire.\n"


@pytest.mark.parametrize(
    "extra", [[], ["--yes"], ["--dry-run"], ["--yes", "--json"], ["--dry-run", "--json"]]
)
def test_snapshots_that_a_table_has_not_are_named(
    icetower: Icetower, grown: str, extra: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    ids = ("--snapshot-id", "9", "--snapshot-id", "77", "--snapshot-id", "8")

    outcome = icetower("table", "expire", grown, *ids, *extra)

    assert outcome.status == 0
    assert f"Table {grown} has no snapshot 8, 9: they may have expired before.\n" in outcome.err


def test_a_snapshot_that_a_table_has_not_is_named_where_nothing_goes(icetower: Icetower, grown: str) -> None:
    outcome = icetower("table", "expire", grown, "--snapshot-id", "9", "--yes")

    assert outcome.err == (
        f"Table {grown} has no snapshot 9: it may have expired before.\nNothing of table {grown} is to expire.\n"
    )


def test_refusal_of_the_server_is_shown(icetower: Icetower, grown: str) -> None:
    refused = icetower("table", "expire", grown, "--snapshot-id", "78", "--yes")

    assert refused.status == 1
    assert "Cannot expire 78. Still referenced by refs: [main]" in refused.err


@pytest.mark.parametrize(
    "options",
    [
        ["--older-than", "soon"],
        ["--older-than", "7"],
        ["--grace", "long"],
        ["--cleanup", "some"],
        ["--retain-last", "0"],
    ],
)
def test_options_that_make_no_sense_are_wrong_usage(icetower: Icetower, options: list[str]) -> None:
    assert icetower("table", "expire", "a.t", *options).status == 2
