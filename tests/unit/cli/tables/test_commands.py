"""`icetower table …` against a real server."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.fileio.locations import local_path
from tests.unit.cli.conftest import Icetower


def test_tables_are_listed(icetower: Icetower, namespace: str, table: str) -> None:
    as_json = icetower("table", "list", namespace, "--json")
    for_people = icetower("table", "list", namespace)

    assert table == f"{namespace}.orders"
    assert as_json.json == [{"namespace": [namespace], "name": "orders"}]
    assert [line.strip() for line in for_people.out.splitlines()][-1] == "orders"


def test_no_tables_is_a_remark(icetower: Icetower, namespace: str) -> None:
    listed = icetower("table", "list", namespace)

    assert (listed.status, listed.out, listed.err) == (0, "", f"No tables in namespace {namespace}.\n")


def test_a_table_is_shown_at_a_glance(icetower: Icetower, table: str) -> None:
    shown = icetower("table", "show", table).out

    for fact in (
        "1: id long required identifier  – the order",
        "2: place struct<city: string>",
        "bucket[4](id) as shard",
        "place.city asc nulls-first",
        "77 (append at ",
        "records: 5)",
        "main (branch) → 77",
        "team = lake",
    ):
        assert fact in shown


def test_a_table_without_snapshots_is_shown(
    icetower: Icetower, catalog: RemoteCatalog, namespace: str
) -> None:
    catalog.tables.create(TableIdentifier(Namespace((namespace,)), "new"), {"type": "struct", "fields": []})

    assert "none: the table is empty" in icetower("table", "show", f"{namespace}.new").out


def test_a_table_is_shown_as_json(icetower: Icetower, table: str) -> None:
    shown = icetower("table", "show", table, "--json").json

    assert set(shown) == {"metadata-location", "metadata"}
    assert shown["metadata"]["current-snapshot-id"] == 77
    assert shown["metadata-location"].startswith(shown["metadata"]["location"])


def test_a_table_is_renamed(icetower: Icetower, namespace: str, table: str) -> None:
    renamed = icetower("table", "rename", table, f"{namespace}.moved")

    assert (renamed.status, renamed.out) == (0, f"Renamed table {table} to {namespace}.moved.\n")
    assert icetower("table", "list", namespace, "--json").json == [
        {"namespace": [namespace], "name": "moved"}
    ]


def test_a_table_is_unregistered_and_registered_again(icetower: Icetower, namespace: str, table: str) -> None:
    left = icetower("table", "unregister", table, "--json")
    assert icetower("table", "show", table).status == 1

    back = icetower("table", "register", table, left.json["metadata-location"])

    assert (back.status, back.out) == (0, f"Registered table {table} at {left.json['metadata-location']}.\n")
    assert icetower("table", "show", table).status == 0
    assert icetower("table", "register", table, left.json["metadata-location"]).status == 1
    assert icetower("table", "register", table, left.json["metadata-location"], "--overwrite").status == 0
    assert "Its metadata stays at" in icetower("table", "unregister", table).out


def test_a_table_whose_metadata_is_gone_is_unregistered(icetower: Icetower, table: str) -> None:
    location = icetower("table", "show", table, "--json").json["metadata-location"]
    Path(local_path(location)).unlink()
    assert icetower("table", "unregister", table).status == 1

    left = icetower("table", "unregister", table, "--unread")

    assert (left.status, left.out) == (0, f"Unregistered table {table}. Its metadata was at {location}.\n")


def test_a_file_system_table_is_adopted_and_forks_are_said(
    icetower: Icetower, server_url: str, tmp_path: Path
) -> None:
    for name, options in (("old_files", ["--layout", "hadoop"]), ("new_home", [])):
        assert icetower("warehouse", "create", name, str(tmp_path), *options).status == 0
    assert "hadoop" in icetower("warehouse", "show", "old_files").out
    assert icetower("namespace", "create", "shop", "--warehouse", "old_files").status == 0
    assert icetower("namespace", "create", "shop", "--warehouse", "new_home").status == 0
    metadata = tmp_path / "shop" / "orders" / "metadata"
    with RemoteCatalog(server_url, "old_files") as files:
        files.tables.create(TableIdentifier(Namespace(("shop",)), "orders"), {"type": "struct", "fields": []})
    (metadata / "v3.metadata.json").write_bytes(b"{}")
    (metadata / "version-hint.text").write_text("1")
    folder = f"file://{tmp_path}/shop/orders"

    adopted = icetower("table", "adopt", "shop.orders", folder, "--warehouse", "new_home")

    assert (adopted.status, adopted.out) == (
        0,
        f"Adopted table shop.orders from version 1 at {folder}/metadata/v1.metadata.json.\n",
    )
    (metadata / "v2.metadata.json").write_bytes(b"{}")
    health = icetower("table", "health", "shop.orders", "--warehouse", "new_home")
    assert "A writer has added 2 versions" in health.out
    again = icetower("table", "adopt", "shop.orders", folder, "--warehouse", "new_home")
    assert again.status == 1
    refused = icetower("table", "drop", "shop.orders", "--yes", "--warehouse", "old_files")
    assert "purgeRequested=true" in refused.err


def test_a_dropped_tables_files_stay(icetower: Icetower, table: str) -> None:
    dropped = icetower("table", "drop", table)

    assert (dropped.status, dropped.out) == (0, f"Dropped table {table}; its files stay.\n")


def test_a_purge_needs_a_yes(icetower: Icetower, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/null").open() as nobody:
        monkeypatch.setattr(sys, "stdin", nobody)
        refused = icetower("table", "drop", table, "--purge")

    assert refused.status == 2
    assert "add --yes if it is meant" in refused.err
    dropped = icetower("table", "drop", table, "--purge", "--yes")
    assert (dropped.status, dropped.out) == (0, f"Dropped table {table}; its files will be deleted.\n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("said", "status"), [("n\n", 1), ("y\n", 0)])
def test_at_a_terminal_a_purge_is_asked_about(
    icetower: Icetower, namespace: str, table: str, monkeypatch: pytest.MonkeyPatch, said: str, status: int
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(said))

    answered = icetower("table", "drop", table, "--purge")

    assert answered.status == status
    assert f"Drop table {table} and delete all its files?" in answered.err
    assert len(icetower("table", "list", namespace, "--json").json) == status


def test_ctrl_c_at_a_question_is_told_from_a_no(
    icetower: Icetower, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopping(Terminal):
        def readline(self, size: int | None = -1) -> str:  # type: ignore[override]  # of two parents that disagree
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Stopping())

    stopped = icetower("table", "drop", table, "--purge")

    assert (stopped.status, stopped.out.strip()) == (130, "")


@pytest.mark.parametrize("name", ["orders", ".orders", "a..b", "a.", ""])
def test_a_name_that_is_none_is_wrong_usage(icetower: Icetower, name: str) -> None:
    refused = icetower("table", "show", name)

    assert refused.status == 2
    assert "icetower table show --help" in refused.err
