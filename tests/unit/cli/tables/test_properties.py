"""`icetower table properties` against a real server."""

from __future__ import annotations

from tests.unit.cli.conftest import Icetower


def test_what_is_set_is_shown_and_all_on_request(icetower: Icetower, table: str) -> None:
    every = icetower("table", "properties", table, "--all")
    as_json = icetower("table", "properties", table, "--json")

    assert (every.status, as_json.status) == (0, 0)
    (line,) = [line for line in every.out.splitlines() if line.startswith("write.format.default ")]
    assert line.split()[1:3] == ["parquet", "default"]
    assert all(item["origin"] != "default" for item in as_json.json)
    assert {item["name"] for item in as_json.json} >= {"write.parquet.compression-codec"}
