"""`icetower table refs`, `set-ref`, `drop-ref` and `rollback` against a real server."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from app.cli.tables.refs import milliseconds_from
from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from tests.unit.cli.conftest import Icetower


@pytest.fixture
def grown(catalog: RemoteCatalog, table: str) -> str:
    """The table, with snapshot 78 after 77."""
    namespace, _, name = table.partition(".")
    identifier = TableIdentifier(Namespace((namespace,)), name)
    metadata = catalog.tables.load(identifier).metadata
    snapshot = {
        **metadata["snapshots"][0],
        "snapshot-id": 78,
        "parent-snapshot-id": 77,
        "sequence-number": 2,
        "timestamp-ms": metadata["last-updated-ms"] + 1,
    }
    updates: list[dict[str, Any]] = [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 78},
    ]
    catalog.tables.commit(identifier, updates)
    return table


def test_branches_and_tags_are_made_listed_moved_and_dropped(icetower: Icetower, grown: str) -> None:
    made = icetower("table", "set-ref", grown, "eoy", "--tag", "--snapshot", "77", "--max-ref-age-ms", "1000")
    again = icetower("table", "set-ref", grown, "eoy", "--to", "eoy")
    moved = icetower("table", "set-ref", grown, "eoy", "--to", "main", "--expect", "77")
    listed = icetower("table", "refs", grown)
    kept = icetower("table", "set-ref", grown, "eoy", "--max-ref-age-ms", "2000")
    dropped = icetower("table", "drop-ref", grown, "eoy")

    assert made.out.startswith(f"Made eoy of table {grown} at 77 (commit ")
    assert again.out == f"Nothing to do: eoy of table {grown} is at 77 and as wanted.\n"
    assert moved.out.startswith(f"Moved eoy of table {grown} from 77 to 78 (commit ")
    assert listed.out.splitlines()[-1].split()[:3] == ["eoy", "tag", "78"]
    assert listed.out.rstrip().endswith("max-ref-age-ms 1000")
    assert kept.out.startswith(f"Changed eoy of table {grown}, which stays at 78 (commit ")
    assert dropped.out.startswith(f"Dropped eoy of table {grown}, which was at 78 (commit ")
    assert [ref["name"] for ref in icetower("table", "refs", grown, "--json").json] == ["main"]


@pytest.mark.parametrize("where", [("--to", "77"), ("--to", "old"), ("--to", "2025"), ("--to-time", "{log}")])
def test_rollback_to_a_snapshot_a_tag_or_a_time(
    icetower: Icetower, grown: str, where: tuple[str, str]
) -> None:
    for tag in ("old", "2025"):
        icetower("table", "set-ref", grown, tag, "--tag", "--snapshot", "77")
    since = icetower("table", "history", grown, "--json").json["current"][-1]["since-ms"]

    back = icetower("table", "rollback", grown, where[0], where[1].replace("{log}", str(since)), "--json")

    assert (back.json["snapshot-id-before"], back.json["snapshot-id-after"]) == (78, 77)
    assert back.json["changed"] is True


def test_refusals_are_told_in_the_servers_words(icetower: Icetower, grown: str) -> None:
    raced = icetower("table", "rollback", grown, "--to", "77", "--expect", "76")
    ahead = icetower("table", "rollback", grown, "--to", "99")

    assert (raced.status, raced.out) == (1, "")
    assert "expected id 76 != 78" in raced.err
    assert ahead.err == "Error: Snapshot does not exist: 99\n"


@pytest.mark.parametrize("where", [(), ("--to", "1", "--to-time", "2025-10-09"), ("--to-time", "yesterday")])
def test_rollback_that_does_not_say_where_to_is_wrong_usage(
    icetower: Icetower, where: tuple[str, ...]
) -> None:
    assert icetower("table", "rollback", "a.b", *where).status == 2


def test_two_places_for_a_ref_are_wrong_usage_in_the_words_of_the_options(icetower: Icetower) -> None:
    refused = icetower("table", "set-ref", "a.b", "main", "--to", "audit", "--cherry-pick", "7")

    assert refused.status == 2
    assert "only one of --to, --cherry-pick can say where to" in " ".join(refused.err.split())


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1760000000123", 1760000000123),
        ("2025-10-09", 1759968000000),
        ("2025-10-09T12:00:00", 1760011200000),
        ("2025-10-09T12:00:00+02:00", 1760004000000),
        ("20251009", 1759968000000),
    ],
)
def test_times_are_utc_unless_they_say_otherwise(text: str, milliseconds: int) -> None:
    assert milliseconds_from(text) == milliseconds


def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(typer.BadParameter, match="is not a time"):
        milliseconds_from("soon")
