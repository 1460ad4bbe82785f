"""`icetower rebuild`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from app.catalog import named
from app.catalog.context.callers import SERVER_ITSELF
from app.catalog.context.catalog import Catalog
from app.catalog.context.kinds import TABLES
from app.catalog.exports.writing import export_pointers
from app.catalog.warehouses import create_warehouse
from app.database.warehouses import Layout
from app.fileio.local import LocalFiles
from tests.builders.catalogs import new_warehouse, server_on
from tests.builders.tables import DEPARTURES, table_in, view_in
from tests.unit.catalog.commits.interference import ARRIVALS
from tests.unit.cli.conftest import Icetower, Outcome


@pytest.fixture
def lake(folder: Path) -> str:
    """The root of a warehouse with a table and a view, whose database is not there."""
    root = folder / "lake"
    catalog = new_warehouse(
        server_on(f"sqlite:///{folder}/elsewhere.db", LocalFiles()), "lake", f"file://{root}"
    )
    table_in(catalog)
    view_in(catalog, ARRIVALS)
    return str(root)


def lines(outcome: Outcome) -> list[dict[str, Any]]:
    return [json.loads(line) for line in outcome.out.splitlines()]


def test_a_dry_run_shows_all_and_changes_nothing(bare: Icetower, lake: str) -> None:
    wanted = ("rebuild", "--warehouse", "lake", "--root", lake)
    shown = bare(*wanted, "--dry-run")

    assert shown.status == 0
    assert "flights.departures" in shown.out
    assert "Would make 2 pointers" in shown.out
    documents = lines(bare(*wanted, "--dry-run", "--json"))
    assert [each.get("name") for each in documents] == ["arrivals", "departures", None]
    assert documents[-1]["summary"]["done"] == 0
    # Nor is there a warehouse of a wrong root from now on.
    server = server_on(f"sqlite:///{Path.cwd()}/.icetower/icetower.db", LocalFiles())
    assert server.warehouses.find("lake") is None


def test_links_that_are_passed_over_are_named(bare: Icetower, lake: str) -> None:
    (Path(lake) / "link").symlink_to(lake)

    shown = bare("rebuild", "--warehouse", "lake", "--root", lake, "--dry-run")

    assert f"are not followed, and what is behind them is left out: file://{lake}/link" in shown.err


def test_it_asks_first_and_does_nothing_without_an_answer(bare: Icetower, lake: str) -> None:
    wanted = ("rebuild", "--warehouse", "lake", "--root", lake)
    refused = bare(*wanted)

    assert refused.status == 2
    assert "--yes" in refused.err
    assert lines(bare(*wanted, "--dry-run", "--json"))[-1]["summary"]["add"] == 2
    assert "--root" in bare("rebuild", "--warehouse", "lake").err


def test_it_is_done_and_nothing_is_left_to_do(bare: Icetower, lake: str) -> None:
    wanted = ("rebuild", "--warehouse", "lake", "--root", lake, "--yes")
    done = lines(bare(*wanted, "--json"))

    assert [each["done"] for each in done[:2]] == [True, True]
    assert done[-1]["summary"] == {
        "add": 2,
        "advance": 0,
        "keep": 0,
        "leave": 0,
        "dropped": 0,
        "purges-called-off": 0,
        "done": 2,
        "failed": 0,
        "namespaces": 1,
        "files": 2,
        "unreadable": 0,
        "export": None,
    }
    assert "Made 0 pointers; 2 were as they should be." in bare(*wanted).out


def test_a_warehouse_that_is_not_there_needs_a_root(bare: Icetower, lake: str) -> None:
    refused = bare("rebuild", "--warehouse", "lake")

    assert refused.status == 1
    assert "--root" in refused.err
    bare("rebuild", "--warehouse", "lake", "--root", lake, "--yes")
    other = bare("rebuild", "--warehouse", "lake", "--root", "/elsewhere")
    assert other.status == 2
    assert f"is there already, at file://{lake}" in other.err


def test_storage_of_a_warehouse_that_is_there_stays(bare: Icetower, lake: str) -> None:
    given = (
        "--storage",
        "s3.region=here",
        "--storage",
        "s3.access-key-id=hunter2",
        "--storage",
        "s3.secret-access-key=hunter2",
    )
    wanted = ("rebuild", "--warehouse", "lake", "--root", lake, "--yes", *given)

    made = bare(*wanted)
    again = bare(*wanted)
    other = bare(*wanted[:6], "--storage", "s3.region=there", "--storage", "s3.access-key-id=hunter3")
    wrong = bare(*wanted[:6], "--storage", "x")

    assert "--storage" not in made.err + again.err
    assert "--storage has no effect on s3.access-key-id, s3.region. icetower warehouse update" in other.err
    assert "hunter" not in other.err
    assert (wrong.status, "'x' is not <key>=<value>" in wrong.err) == (2, True)


def test_a_root_at_which_nothing_was_found_is_not_the_warehouses(bare: Icetower, lake: str) -> None:
    mistaken = bare("rebuild", "--warehouse", "lake", "--root", f"{lake}s", "--yes")

    assert (mistaken.status, mistaken.out.endswith("Made 0 pointers; 0 were as they should be.\n")) == (
        0,
        True,
    )
    done = bare("rebuild", "--warehouse", "lake", "--root", lake, "--yes")
    assert done.out.endswith("Made 2 pointers; 0 were as they should be.\n")


def test_an_export_that_is_not_there_is_said_in_one_line(bare: Icetower, lake: str) -> None:
    refused = bare("rebuild", "--warehouse", "lake", "--root", lake, "--export", f"file://{lake}/none.gz")

    assert refused.status == 1
    assert refused.err.count("\n") == 1
    assert "none.gz" in refused.err


def test_files_that_cannot_be_read_are_shown(bare: Icetower, lake: str) -> None:
    folder = next(Path(lake).glob("flights/departures*/metadata"))
    (folder / "00009-x.metadata.json").write_text("{")

    shown = bare("rebuild", "--warehouse", "lake", "--root", lake, "--dry-run")

    assert "00009-x.metadata.json cannot be read" in shown.err
    assert "1 left" in shown.out


def test_what_was_dropped_comes_back_if_it_is_asked_for(bare: Icetower, lake: str, folder: Path) -> None:
    wanted = ("rebuild", "--warehouse", "lake", "--root", lake, "--yes", "--json")
    bare(*wanted)
    server = server_on(f"sqlite:///{folder}/.icetower/icetower.db", LocalFiles())
    warehouse = server.warehouses.find("lake")
    assert warehouse is not None
    catalog = new_warehouse(server, "other", f"file://{folder}/other")
    named.drop(type(catalog)(server, warehouse, catalog.caller), TABLES, DEPARTURES)

    assert [each for each in lines(bare(*wanted)) if each.get("reason") == "it was dropped; its files stayed"]
    assert lines(bare(*wanted, "--dropped"))[-1]["summary"]["done"] == 1


def test_what_is_only_shown_is_a_command_to_type(bare: Icetower, folder: Path) -> None:
    server = server_on(f"sqlite:///{folder}/elsewhere.db", LocalFiles())
    catalog = new_warehouse(
        server,
        "lake",
        f"file://{folder}/lake",
        storage={"s3.region": "here", "s3.secret-access-key": "hunter2"},
        default_properties={"icetower.protected": "true"},
    )
    table_in(catalog)
    new_warehouse(
        server,
        "files",
        f"file://{folder}/it's here; rm x",
        layout=Layout.HADOOP,
        default_properties={"a": "b c"},
        storage={"s3.session-token": "env:ICETOWER_SECRET_T"},
    )
    export_pointers(server, catalog.warehouse)
    wanted = ("rebuild", "--warehouse", "lake", "--root", f"{folder}/lake", "--yes")

    said = bare(*wanted).err
    documents = lines(bare(*wanted, "--json"))

    commands = {
        "settings": [
            *("icetower", "warehouse", "update", "--storage=s3.region=here"),
            *("--storage=s3.secret-access-key=env:ICETOWER_SECRET_...", "--", "lake"),
        ],
        "files": [
            *("icetower", "warehouse", "create", "--layout=hadoop", "--default=a=b c"),
            *(
                "--storage=s3.session-token=env:ICETOWER_SECRET_T",
                "--",
                "files",
                f"file://{folder}/it's here; rm x",
            ),
        ],
    }
    shown = {
        each.get("warehouse", "settings"): each
        for each in documents
        if "warehouse" in each or "settings" in each
    }
    assert shlex.split(shown["settings"]["settings"]["command"]) == commands["settings"]
    assert shlex.split(shown["files"]["command"]) == commands["files"]
    assert all(shlex.join(command) in said for command in commands.values())
    assert "hunter2" not in said


def test_files_that_may_be_the_newest_are_all_shown(bare: Icetower, lake: str) -> None:
    (newest,) = Path(lake).glob("flights/departures*/metadata/*.metadata.json")
    rival = newest.with_name("00000-11111111-1111-4111-8111-111111111111.metadata.json")
    rival.write_bytes(newest.read_bytes())

    shown = bare("rebuild", "--warehouse", "lake", "--root", lake, "--dry-run")

    (line,) = [line for line in shown.err.splitlines() if "flights.departures may be at" in line]
    assert f"file://{newest}" in line
    assert f"file://{rival}" in line


@pytest.mark.parametrize(
    ("setting", "value"), [("default_warehouse", "a/b"), ("default_warehouse_location", "s3://")]
)
def test_a_default_warehouse_that_cannot_be_is_wrong_usage(
    bare: Icetower, setting: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"ICETOWER_{setting.upper()}", value)

    refused = bare("rebuild", "--dry-run")

    assert refused.status == 2
    assert refused.err.startswith(f"Error: Invalid setting {setting}: ")


def test_a_default_warehouse_where_none_would_be_made_today_comes_back(
    bare: Icetower, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = folder / "C#"
    root = f"file://{place}/.icetower/warehouse"
    place.mkdir()
    elsewhere = server_on(f"sqlite:///{folder}/elsewhere.db", LocalFiles())
    create_warehouse(elsewhere, SERVER_ITSELF, "default", root, {}, {}, {}, has_tables=True)
    warehouse = elsewhere.warehouses.find("default")
    assert warehouse is not None
    table_in(Catalog(elsewhere, warehouse, SERVER_ITSELF))
    monkeypatch.chdir(place)

    done = bare("rebuild", "--yes")

    assert "Made 1 pointer" in done.out, done.err


def test_namespace_for_tables_without_one_may_have_dots(bare: Icetower, lake: str) -> None:
    root = f"{lake}/flights"  # whose folders are tables then
    wanted = ("rebuild", "--warehouse", "flights", "--root", root, "--dry-run", "--json")
    found = lines(bare(*wanted, "--namespace", "eu.west/sales", "--separator", "/"))

    assert found[-1]["summary"]["add"] == 2
    assert [each["namespace"] for each in found[:2]] == [["eu.west", "sales"]] * 2
