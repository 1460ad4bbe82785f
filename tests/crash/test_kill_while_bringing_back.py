"""A server killed while tables are dropped, brought back, purged and restored: nothing lost, nothing there twice."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.builders.folders import files_below
from tests.crash.crashes import Client, CrashingServer, check_table
from tests.e2e.patience import wait_until

pytestmark = [
    pytest.mark.slow,
    # Each kill takes seconds: with Postgres they are tried nightly.
    pytest.mark.parametrize(
        "server",
        ["sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.nightly])],
        indirect=True,
    ),
]

WANTED = {"namespace": ["ns"], "name": "t"}
PATH = "/v1/namespaces/ns/tables/t"


def dropped(client: Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.http.get("/v1/dropped").json()["dropped"]
    return found


def killed_at(server: CrashingServer, step: str, path: str, body: dict[str, Any], **headers: str) -> None:
    """Send a request that kills the server at a step, and start it again."""
    server.arm(step)
    with pytest.raises(httpx.TransportError):
        Client(server.url).http.post(path, json=body, headers={"Idempotency-Key": "once", **headers})
    server.wait_until_dead()
    server.start()


@pytest.mark.parametrize(("step", "lands"), [("before_undrop", False), ("after_undrop", True)])
def test_undrop_happens_wholly_or_not_at_all(server: CrashingServer, step: str, *, lands: bool) -> None:
    client = Client(server.url)
    client.make_table("t")
    assert client.commit("t", "mark-before").status_code == 200
    before = client.load("t")
    client.http.delete(PATH)

    killed_at(server, step, "/v1/undrop", WANTED)

    assert client.http.get(PATH).status_code == (200 if lands else 404)
    assert len(dropped(client)) == (0 if lands else 1)
    again = client.http.post("/v1/undrop", json=WANTED, headers={"Idempotency-Key": "once"})
    assert again.status_code == 200, again.text
    assert again.json()["metadata-location"] == before["metadata-location"]
    assert client.load("t") == before
    assert client.commit("t", "mark-after").status_code == 200
    check_table(client.load("t"), {"mark-before", "mark-after"}, {"mark-before", "mark-after"})


@pytest.mark.parametrize(("step", "lands"), [("before_purge_dropped", False), ("after_purge_dropped", True)])
def test_purge_of_what_was_dropped_happens_wholly_or_not_at_all(
    server: CrashingServer, step: str, *, lands: bool
) -> None:
    client = Client(server.url)
    client.make_table("t")
    folder = server.folder / "warehouse"
    client.http.delete(PATH)

    killed_at(server, step, "/v1/dropped/purge", WANTED)

    if lands:
        assert dropped(client) == []
        assert client.http.post("/v1/undrop", json=WANTED).status_code == 404
        # The dead server may have leased the entry at its last moment.
        server.forget_leases()
        wait_until(lambda: not [path for path in files_below(folder) if path.name.endswith(".metadata.json")])
    else:
        assert client.http.post("/v1/undrop", json=WANTED).status_code == 200
        assert client.commit("t", "mark-after").status_code == 200


@pytest.mark.parametrize(
    ("step", "lands"),
    [("before_write", False), ("after_write", False), ("before_put", False), ("after_put", True)],
)
def test_tables_are_restored_together_or_not_at_all(
    server: CrashingServer, step: str, *, lands: bool
) -> None:
    client = Client(server.url)
    for name in ("a", "b"):
        client.make_table(name)
        client.commit(name, "mark-then")
    at = client.http.get("/v1/namespaces/ns/tables/b/history").json()["events"][0]["at-ms"]
    wait_until(lambda: time.time_ns() // 1_000_000 > at + 1)
    for name in ("a", "b"):
        client.commit(name, "mark-later")
    names = [{"namespace": ["ns"], "name": name} for name in ("a", "b")]
    body = {"at": str(at), "tables": names}

    killed_at(server, step, "/v1/restore", body)

    marks = [set(client.load(name)["metadata"]["properties"]) & {"mark-later"} for name in ("a", "b")]
    assert marks == ([set(), set()] if lands else [{"mark-later"}, {"mark-later"}])
    again = client.http.post("/v1/restore", json=body, headers={"Idempotency-Key": "once"})
    assert again.status_code == 200, again.text
    for name in ("a", "b"):
        check_table(client.load(name), {"mark-then"}, {"mark-then"})
        events = client.http.get(f"/v1/namespaces/ns/tables/{name}/history").json()["events"]
        assert [event["event"] for event in events].count("restored") == 1


@pytest.mark.parametrize(("step", "lands"), [("before_put", False), ("after_put", True)])
def test_adoption_happens_wholly_or_not_at_all(server: CrashingServer, step: str, *, lands: bool) -> None:
    """The folder's own writers go on meanwhile: what landed is answered again, and the newer version is told."""
    client = Client(server.url)
    client.make_table("t")
    metadata = client.load("t")["metadata"]
    folder = Path(metadata["location"].removeprefix("file://")).with_name("by_its_folder")
    versions = [folder / "metadata" / f"v{number}.metadata.json" for number in (1, 2)]
    versions[0].parent.mkdir(parents=True)
    text = json.dumps({**metadata, "table-uuid": str(uuid.uuid4()), "location": f"file://{folder}"})
    versions[0].write_text(text)
    body = {"name": "adopted", "location": f"file://{folder}"}

    killed_at(server, step, "/v1/namespaces/ns/adopt", body)
    versions[1].write_text(text)

    assert client.http.head("/v1/namespaces/ns/tables/adopted").status_code == (204 if lands else 404)
    again = client.http.post("/v1/namespaces/ns/adopt", json=body, headers={"Idempotency-Key": "once"})
    assert again.status_code == 200, again.text
    assert again.json()["version"] == (1 if lands else 2)
    assert again.json()["later-versions"] == ([f"file://{versions[1]}"] if lands else [])
    assert client.commit("adopted", "mark-after").status_code == 200
