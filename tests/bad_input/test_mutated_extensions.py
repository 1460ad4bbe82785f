"""Bodies of the extensions, damaged at random: refused in words and nothing changed, or taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bad_input.fuzzing_ground import NS, Ground, check_answered, check_readable, fuzzing_ground
from tests.bad_input.mutations import as_json, mutated
from tests.builders.http_catalog import SCHEMA, make_namespace, make_table
from tests.builders.parquet_files import parquet_rows

MANY = max(5, settings().max_examples // 4)
"""For each route, of which there are many."""
TABLE = "/v1/namespaces/b/tables/plain"
FILE = "plain/data/1.parquet"
JOB = "f" * 32
SPEC = {"spec-id": 0, "fields": [{"name": "part", "transform": "identity", "source-id": 2, "field-id": 1000}]}
TAKEN_ONCE = ("/undrop", "/dropped/purge", "/hold", "/end", "/maintenance/jobs")
"""What is there no more after the first time, or held by another one."""
NOT_TAKEN = "/adopt"
"""Files in memory are no tree that could be adopted."""


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with fuzzing_ground(tmp_path_factory.mktemp("ground")) as made:
        yield made


@pytest.fixture(scope="module")
def bodies(ground: Ground) -> Mapping[str, list[Any]]:
    """What each route takes; of a table that is dropped, and of one with a file beside it."""
    client = ground.client
    make_namespace(client, "b")
    made = {"name": "plain", "schema": SCHEMA, "partition-spec": SPEC}
    plain = client.post("/v1/namespaces/b/tables", json=made).raise_for_status().json()["metadata"]
    location, uuid = plain["location"], plain["table-uuid"]
    for name in ("gone", "lost"):
        make_table(client, "b", name)
        client.delete(f"/v1/namespaces/b/tables/{name}").raise_for_status()
    job = {"job": "expire-snapshots", "id": JOB}
    begun = client.post(f"{TABLE}/maintenance/jobs", json=job).raise_for_status()
    at = str(begun.json()["began-ms"])
    content = parquet_rows(id=[1, 2], note=["a", "a"])
    path = ground.write(FILE, content)
    appended = client.post(f"{TABLE}/append", json={"files": [{"file-path": path}]}).raise_for_status()
    head = appended.json()["snapshot-id"]
    described = {
        "spec-id": 0,
        "partition": ["a"],
        "content": "data",
        "file-path": path,
        "file-format": "parquet",
        "file-size-in-bytes": len(content),
        "record-count": 2,
        "column-sizes": {"keys": [1], "values": [8]},
        "value-counts": {"keys": [1], "values": [2]},
        "null-value-counts": {"keys": [1], "values": [0]},
        "lower-bounds": {"keys": [1], "values": ["0100000000000000"]},
        "upper-bounds": {"keys": [1], "values": ["0200000000000000"]},
        "split-offsets": [4],
        "sort-order-id": 0,
    }
    operation = {"kind": "overwrite", "filter": {"type": "eq", "term": "id", "value": 1}}
    wanted_job = {"job": "expire-snapshots", "id": "0" * 32, "options": {"a": 1}, "lease-ms": 60_000}
    append = {
        "files": [{"file-path": path, "spec-id": 0, "partition": {"part": "a"}}],
        "branch": "main",
        "summary": {"k": "v"},
        "allow-duplicates": True,
        "partition-from-path": True,
        "requirements": [{"type": "assert-table-uuid", "uuid": uuid}],
    }
    found = {"namespace": ["b"], "name": "gone"}
    registration = {"name": "new", "metadata-location": ground.tables[2]["metadata-location"]}
    return {
        f"{TABLE}/append": [append, {**append, "files": [{"data-file": described}]}],
        f"{TABLE}/orphans": [
            {
                "dry-run": False,
                "older-than-ms": 1_000,
                "location": location,
                "file-list": ground.write("list.csv", b"file_path,last_modified\n"),
                "grace-period-ms": 0,
            }
        ],
        f"{TABLE}/rewrite-manifests": [
            {
                "dry-run": True,
                "spec-id": 0,
                "cluster-by": "part",
                "branch": "main",
                "target-size-bytes": 1 << 20,
            }
        ],
        f"{TABLE}/remove-dangling-deletes": [{"dry-run": False, "branch": "main"}],
        f"{TABLE}/partition-statistics": [{"dry-run": False, "snapshot-id": head}],
        f"{TABLE}/conflicts": [{"operation": operation, "ref": "main"}],
        f"{TABLE}/maintenance/jobs": [wanted_job],
        f"{TABLE}/maintenance/jobs/{JOB}/hold": [{"lease-ms": 60_000}],
        f"{TABLE}/maintenance/jobs/{JOB}/end": [{"state": "failed", "outcome": {"error": "x"}}],
        f"{NS}/register/check": [{**registration, "type": "table", "overwrite": True}],
        f"{NS}/adopt": [{"name": "new", "location": location}],
        "/v1/undrop": [{**found, "as": {"namespace": ["b"], "name": "back"}, "create-namespace": True}],
        "/v1/dropped/purge": [{**found, "name": "lost"}],
        "/v1/restore": [
            {
                "at": at,
                "dry-run": True,
                "tables": [{"namespace": ["a"], "name": "v2"}, {**found, "name": "plain"}],
            }
        ],
    }


ROUTES = [
    f"{TABLE}/append",
    *(
        f"{TABLE}/{what}"
        for what in (
            "orphans",
            "rewrite-manifests",
            "remove-dangling-deletes",
            "partition-statistics",
            "conflicts",
            "maintenance/jobs",
            f"maintenance/jobs/{JOB}/hold",
            f"maintenance/jobs/{JOB}/end",
        )
    ),
    f"{NS}/register/check",
    f"{NS}/adopt",
    "/v1/undrop",
    "/v1/dropped/purge",
    "/v1/restore",
]


@pytest.mark.parametrize("route", ROUTES)
@settings(max_examples=MANY)
@given(data=st.data())
def test_damaged_body_is_refused_or_taken(
    ground: Ground, bodies: Mapping[str, list[Any]], route: str, data: st.DataObject
) -> None:
    before = state_of(ground.client)

    answer = ground.client.post(route, content=as_json(data.draw(mutated(bodies[route]))))

    check_answered(answer)
    if answer.status_code >= 400:
        assert state_of(ground.client) == before
    check_readable(ground.client.get(TABLE).raise_for_status().json()["metadata"])


def state_of(client: httpx.Client) -> Any:
    """Return what is there, what was dropped, and what has happened to the tables."""
    found = [client.get("/v1/dropped").json(), client.get(f"{TABLE}/maintenance/jobs").json()]
    for namespace in ("a", "b"):
        path = f"/v1/namespaces/{namespace}/tables"
        names = sorted(item["name"] for item in client.get(path).json()["identifiers"])
        found += [(name, client.get(f"{path}/{name}").json().get("metadata-location")) for name in names]
    return found


def test_bodies_to_start_from_are_taken(ground: Ground, bodies: Mapping[str, list[Any]]) -> None:
    for route in ROUTES:
        for body in bodies[route]:
            answer = ground.client.post(route, json=body)

            if route.endswith(NOT_TAKEN):
                assert "Cannot keep file-system tables" in answer.json()["error"]["message"]
                continue
            may_be_late = route.endswith(TAKEN_ONCE) and answer.status_code in (404, 409)
            assert answer.status_code == 200 or may_be_late, (route, answer.text)
