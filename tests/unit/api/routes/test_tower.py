"""The tower over HTTP, and in the metrics."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from app.catalog.context.seen.traffic import Counts, QueueState
from app.catalog.context.server import Server
from app.main import create_app
from tests.builders.http_catalog import (
    error_of,
    http_catalog,
    make_namespace,
    make_table,
    make_view,
    served,
    set_properties,
    settings_in,
    stale_append,
)


def test_commits_are_counted(api: httpx.Client, ns: str) -> None:
    make_table(api, ns, "t")
    path = f"/v1/namespaces/{ns}/tables/t"
    before = api.get(f"{path}/tower").json()
    for number in range(3):
        api.post(path, json=set_properties(a=str(number)))
    stale = {"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}
    assert api.post(path, json={"requirements": [stale], "updates": []}).status_code == 409

    after = api.get(f"{path}/tower").json()

    assert (before["landed"], before["moves"], before["process"]) == (1, 1, os.getpid())
    assert (after["landed"], after["moves"], after["refused"], after["refused-last-minute"]) == (4, 4, 1, 1)
    assert {*Counts.__slots__, *QueueState.__slots__} <= {name.replace("-", "_") for name in after}
    assert (after["namespace"], after["table"]) == ([ns], "t")


def test_a_table_made_anew_does_not_have_the_numbers_of_the_one_that_was_dropped(
    api: httpx.Client, ns: str
) -> None:
    path = f"/v1/namespaces/{ns}/tables/t"
    make_table(api, ns, "t")
    for number in range(3):
        api.post(path, json=set_properties(a=str(number))).raise_for_status()
    api.delete(path).raise_for_status()
    make_table(api, ns, "t")

    found = api.get(f"{path}/tower").json()

    assert (found["landed"], found["moves"], found["landed-last-minute"]) == (1, 1, 1)


def test_slots_and_the_queue_are_seen(tmp_path: Path) -> None:
    with http_catalog(tmp_path) as api:
        make_namespace(api, "a")
        make_table(api, "a", "t")
        path = "/v1/namespaces/a/tables/t"
        # Its writer stays away for a minute, so its slot is not over before this test.
        slow = {"commit.retry.min-wait-ms": "60000", "commit.retry.num-retries": "3"}
        api.post(path, json=set_properties(**slow)).raise_for_status()
        # After its first loss a writer gets no slot.
        for _ in range(2):
            assert api.post(path, json=stale_append(1)).status_code == 409

        found = api.get(f"{path}/tower").json()
        (listed,) = api.get("/v1/tower").json()["tables"]
        lines = api.get("/metrics").text.splitlines()

        expected = {
            "slots-given": 1,
            "slots-used": 0,
            "queue-length": 1,
            "answers-held": 0,
            "window-ms": 60.0,
        }
        assert {name: found[name] for name in expected} == expected
        assert {name: listed[name] for name in expected} == expected
        labels = f'{{process="{os.getpid()}",table="a.t",warehouse="default"}}'
        for name, value in {
            "slots_given_total": 1.0,
            "gave_up_total": 0.0,
            "queue_length": 1.0,
            "slot_window_seconds": 0.06,
        }.items():
            assert f"icetower_table_{name}{labels} {value}" in lines

        for _ in range(2):
            assert api.post(path, json=stale_append(1)).status_code == 409
        found = api.get(f"{path}/tower").json()
        numbers = [found[name] for name in ("slots-given", "slots-lost", "gave-up", "queue-length")]
        assert numbers == [2, 2, 1, 0], "three retries are all that it has"


def test_the_queue_of_one_table_is_that_of_all_servers(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    here, there = create_app(settings), create_app(settings)
    with served(here, settings) as api, served(there, settings) as other:
        make_namespace(api, "a")
        make_table(api, "a", "t")
        path = "/v1/namespaces/a/tables/t"
        api.post(path, json=set_properties(**{"commit.retry.min-wait-ms": "60000"})).raise_for_status()
        for _ in range(2):
            assert other.post(path, json=stale_append(1)).status_code == 409

        found = api.get(f"{path}/tower").json()
        (listed,) = api.get("/v1/tower").json()["tables"]

    assert (found["queue-length"], found["slots-given"]) == (1, 0)
    assert listed["queue-length"] == 0, "this process had nothing to do with the queue"


def test_the_busiest_tables_of_the_warehouse_are_listed(tmp_path: Path) -> None:
    with http_catalog(tmp_path) as api:
        make_namespace(api, "a")
        for name in ("quiet", "busy"):
            make_table(api, "a", name)
        make_view(api, "a", "view")
        assert api.get("/v1/namespaces/a/tables/quiet/tower").status_code == 200
        for number in range(3):
            api.post("/v1/namespaces/a/tables/busy", json=set_properties(a=str(number)))

        both, one = api.get("/v1/tower").json(), api.get("/v1/default/tower?limit=1").json()

        assert [table["table"] for table in both["tables"]] == ["busy", "quiet"]
        assert [table["table"] for table in one["tables"]] == ["busy"]


def test_a_table_that_is_quiet_has_zeros(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with served(create_app(settings), settings) as api:
        make_namespace(api, "a")
        make_table(api, "a", "t")
    with served(create_app(settings), settings) as api:
        found = api.get("/v1/namespaces/a/tables/t/tower").json()
        listed = api.get("/v1/tower").json()["tables"]

    assert (found["landed"], found["last-ms"], listed) == (0, 0, [])


@pytest.mark.parametrize("limit", ["0", "201", "x", "-1", "", "9999", "٣"])
def test_a_limit_that_is_none_is_refused(api: httpx.Client, limit: str) -> None:
    assert error_of(api.get("/v1/tower", params={"limit": limit})) == (
        400,
        "BadRequestException",
        f"Invalid limit {limit!r}: it must be a number from 1 to 200",
    )


def test_a_table_that_is_not_there_is_refused(api: httpx.Client, ns: str) -> None:
    answer = api.get(f"/v1/namespaces/{ns}/tables/none/tower")

    assert error_of(answer) == (404, "NoSuchTableException", f"Table does not exist: {ns}.none")


def test_metrics_have_a_line_for_each_table_that_is_kept(tmp_path: Path) -> None:
    app = create_app(settings_in(tmp_path))
    server: Server = app.state.parts.server
    with served(app) as api:
        make_namespace(api, "a")
        make_table(api, "a", "t")
        with ThreadPoolExecutor(4) as pool:
            body = set_properties(a="b")
            list(pool.map(lambda _: api.post("/v1/namespaces/a/tables/t", json=body), range(12)))

        lines = api.get("/metrics").text.splitlines()

        counts = server.traffic.busiest(1)[0].counts
        labels = f'{{process="{os.getpid()}",table="a.t",warehouse="default"}}'
        landed = [line for line in lines if line.startswith("icetower_table_landed_total")]
        assert landed == [f"icetower_table_landed_total{labels} 13.0"]
        assert f"icetower_table_moves_total{labels} {float(counts.moves)}" in lines
        assert sum(line.startswith("# HELP icetower_table_") for line in lines) == len(Counts.__slots__) + 8
        assert f"icetower_table_queue_length{labels} 0.0" in lines
        assert any(line.startswith("icetower_commits_together_bucket") for line in lines)
        assert any(line.startswith("icetower_races_lost_total") for line in lines)


def test_metrics_tell_apart_tables_whose_names_have_dots(tmp_path: Path) -> None:
    with http_catalog(tmp_path) as api:
        make_namespace(api, "a")
        make_namespace(api, "a", "b")
        make_table(api, "a", "b.c")
        make_table(api, "a%1Fb", "c")

        lines = api.get("/metrics").text.splitlines()

        series = [line.rpartition(" ")[0] for line in lines if not line.startswith("#")]
        assert len(series) == len(set(series))
        landed = [line for line in series if line.startswith("icetower_table_landed_total")]
        assert {line.split('"')[3] for line in landed} == {"a.b.c", "a.`b.c`"}
