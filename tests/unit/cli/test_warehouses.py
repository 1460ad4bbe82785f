"""`icetower warehouse …` against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.client.answers import TableHealthPage
from app.client.table.health import HealthCalls
from tests.unit.cli.conftest import Icetower
from tests.unit.cli.passing_items import PassingItems


def test_a_warehouse_is_created_shown_changed_used_and_dropped(icetower: Icetower, folder: Path) -> None:
    created = icetower(
        "warehouse", "create", "lake", str(folder), "--default", "a=1", "--override", "b=2",
        "--storage", "s3.secret-access-key=hunter2", "--storage", "s3.region=eu",
    )  # fmt: skip
    shown = icetower("warehouse", "show", "lake")

    assert (created.status, created.out) == (0, f"Created warehouse lake at file://{folder}.\n")
    assert "hunter2" not in shown.out
    assert "s3.secret-access-key = ********" in shown.out

    changed = icetower("warehouse", "update", "lake", "--override", "c=3", "--remove-override", "b")

    assert "c = 3" in changed.out
    as_json = icetower("warehouse", "show", "lake", "--json").json
    assert as_json["default-properties"] == {"a": "1"}
    assert as_json["override-properties"] == {"c": "3"}
    assert icetower("namespace", "create", "only_here", "--warehouse", "lake").status == 0
    assert icetower("namespace", "list", "--warehouse", "lake", "--json").json == [["only_here"]]
    assert "not empty" in icetower("warehouse", "drop", "lake").err
    assert icetower("namespace", "drop", "only_here", "--warehouse", "lake").status == 0
    assert icetower("warehouse", "drop", "lake").out == "Dropped warehouse lake.\n"
    assert icetower("warehouse", "show", "lake").err == "Error: Warehouse does not exist: lake\n"


def test_warehouses_are_listed(icetower: Icetower) -> None:
    as_json = icetower("warehouse", "list", "--json").json
    for_people = icetower("warehouse", "list").out

    default = next(found for found in as_json if found["name"] == "default")
    assert default["root-location"] in for_people


def test_an_update_leaves_protection_and_all_other_keys(icetower: Icetower, folder: Path) -> None:
    kept = "icetower.protected=true", "icetower.undrop.keep-ms=86400000"
    icetower(
        "warehouse", "create", "safe", str(folder), *(part for pair in kept for part in ("--default", pair))
    )

    assert icetower("warehouse", "update", "safe", "--default", "clients=8").status == 0

    assert "icetower.protected is on" in icetower("warehouse", "drop", "safe").err
    shown = icetower("warehouse", "show", "safe", "--json").json["default-properties"]
    assert shown == dict(pair.split("=") for pair in (*kept, "clients=8"))
    gone = icetower("warehouse", "update", "safe", "--remove-default", "icetower.protected")
    assert "icetower.protected" not in gone.out
    assert icetower("warehouse", "drop", "safe").status == 0


def test_an_update_of_nothing_is_wrong_usage(icetower: Icetower) -> None:
    refused = icetower("warehouse", "update", "default")

    assert refused.status == 2
    assert "nothing to change" in refused.err


def test_a_property_without_a_value_is_wrong_usage(icetower: Icetower) -> None:
    refused = icetower("warehouse", "create", "x", "/x", "--default", "novalue")

    assert refused.status == 2
    assert "'novalue' is not <key>=<value>" in refused.err


def test_health_is_of_the_warehouse_that_a_variable_names(
    icetower: Icetower, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / ".env").write_text("ICETOWER_WAREHOUSE=not-this-one\n")
    monkeypatch.setenv("ICETOWER_WAREHOUSE", "nowhere")

    assert icetower("warehouse", "health").err == "Error: Warehouse does not exist: nowhere\n"
    assert icetower("warehouse", "health", "default").status == 0


def test_health_keeps_only_the_tables_that_are_shown(
    icetower: Icetower, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = PassingItems()

    def pages() -> Iterator[TableHealthPage]:
        for severity in ("ok", "critical", "info", "ok"):
            findings = [] if severity == "ok" else [{"severity": severity, "code": "c", "message": "m"}]
            tables = [
                items.item(namespace=["a"], table=f"{severity}{n}", severity=severity, findings=findings)
                for n in range(50)
            ]
            yield TableHealthPage.model_construct(tables=tables, waiting_deletions=[])
            del tables

    monkeypatch.setattr(HealthCalls, "warehouse", lambda _: pages())

    shown = icetower("warehouse", "health", "--tables", "2")
    as_json = icetower("warehouse", "health", "--tables", "51", "--json").json

    assert [line.split()[1] for line in shown.out.splitlines()[2:]] == ["a.critical0", "a.critical1"]
    assert "200 tables: 50 critical, 50 info, 100 ok" in shown.err
    assert [table["table"] for table in as_json["tables"][49:]] == ["critical49", "info0"]
    assert items.most < 200
