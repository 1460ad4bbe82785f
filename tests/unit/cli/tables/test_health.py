"""`icetower table health`, `table profile` and `warehouse health` against a real server, on files of PyIceberg."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.unit.cli.conftest import Icetower


@pytest.fixture
def written(server_url: str, namespace: str) -> str:
    """A table of twelve tiny files in two partitions."""
    rows = pa.table({"id": pa.array([1, 2]), "word": pa.array(["a", None]), "price": [1.5, float("nan")]})
    made = RestCatalog("tower", uri=server_url).create_table((namespace, "small"), rows.schema)
    with made.update_spec() as spec:
        spec.add_identity("id")
    for _ in range(6):
        made.append(rows)
    return f"{namespace}.small"


def test_health_is_shown_with_what_mends_it(icetower: Icetower, written: str) -> None:
    shown = icetower("table", "health", written)

    assert shown.status == 0
    lines = {line.split("  ")[0]: line for line in shown.out.splitlines()}
    assert lines["health"].split() == ["health", "critical"]
    assert "12 with" in lines["data files"]
    assert "12 (100 %) below 384.0 MiB" in lines["small files"]
    assert "6.0 of 6 data manifests" in lines["clustered"]
    assert "below 1.0 MiB" in shown.out
    assert "12 data files have" in lines["critical"]
    assert f"icetower maintain {written}" in lines["critical"]


def test_health_as_json_is_the_answer(icetower: Icetower, written: str) -> None:
    found = icetower("table", "health", written, "--ref", "main", "--json").json

    assert (found["severity"], found["files"]["data-files"], found["files"]["partitions"]) == (
        "critical",
        12,
        2,
    )


def test_health_of_a_table_without_a_snapshot_is_shown(
    icetower: Icetower, server_url: str, namespace: str
) -> None:
    schema = pa.schema([("id", pa.int64())])
    RestCatalog("tower", uri=server_url).create_table((namespace, "empty"), schema)

    shown = icetower("table", "health", f"{namespace}.empty")

    assert shown.status == 0
    assert shown.out.splitlines()[0].split() == ["health", "ok"]
    assert "not known: no partition field has bounds" in shown.out


def test_files_that_are_gone_are_named(icetower: Icetower, table: str) -> None:
    shown = icetower("table", "health", table)

    assert shown.status == 0
    lines = {line.split("  ")[0]: line for line in shown.out.splitlines()}
    assert lines["health"].split() == ["health", "critical"]
    assert "list.avro" in lines["critical"]


def test_profile_says_what_is_known_and_what_may_be_cut(icetower: Icetower, written: str) -> None:
    shown = icetower("table", "profile", written)

    assert shown.status == 0
    rows = {line.split()[0]: line for line in shown.out.splitlines() if line.strip()}
    assert "12 " in rows["id"]
    assert "6 (50.0 %)" in rows["word"]
    assert "of 6 files" in rows["word"], "files of nulls have no bounds"
    assert "12 rows in 12 data files." in shown.err


def test_profile_as_json_is_the_answer(icetower: Icetower, written: str) -> None:
    found = icetower("table", "profile", written, "--json").json

    by_name = {column["name"]: column for column in found["columns"]}
    assert (by_name["id"]["lower-bound"], by_name["id"]["upper-bound"]) == (1, 2)
    assert by_name["word"]["null-share"] == 0.5


def test_warehouse_is_shown_the_worst_first(icetower: Icetower, written: str) -> None:
    shown = icetower("warehouse", "health", "--tables", "500")
    found = icetower("warehouse", "health", "--tables", "500", "--json").json["tables"]

    (line,) = [line for line in shown.out.splitlines() if written in line]
    assert line.split()[0] == "critical"
    severities = [table["severity"] for table in found]
    assert severities == sorted(severities, key=["critical", "warning", "info", "ok"].index)
    assert "tables: " in shown.err


def test_what_is_not_there_is_refused(icetower: Icetower, namespace: str) -> None:
    assert icetower("table", "health", f"{namespace}.nope").status == 1
    assert icetower("table", "profile", f"{namespace}.nope").status == 1
    assert icetower("warehouse", "health", "nope").status == 1
