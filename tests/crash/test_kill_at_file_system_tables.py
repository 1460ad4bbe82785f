"""A server killed at each step of a commit to a file-system table: a whole version or none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.crash.crashes import Client, CrashingServer, check_table

pytestmark = [
    pytest.mark.slow,
    # Each kill takes seconds: with Postgres they are tried nightly.
    pytest.mark.parametrize(
        "server",
        ["sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.nightly])],
        indirect=True,
    ),
]

PREFIX = "/v1/files"
TABLE = f"{PREFIX}/namespaces/ns/tables/t"


@pytest.fixture
def folder(server: CrashingServer) -> Path:
    """The root of a warehouse of layout hadoop."""
    root = server.folder / "tables"
    root.mkdir()
    settings = {"name": "files", "root-location": f"file://{root}", "layout": "hadoop"}
    httpx.post(f"{server.url}/management/v1/warehouses", json=settings).raise_for_status()
    return root


def commit(client: Client, mark: str, **headers: str) -> httpx.Response:
    body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {mark: "here"}}]}
    return client.http.post(TABLE, json=body, headers=headers)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.joinpath("ns", "t", "metadata").glob("v*.metadata.json"))


def receipt_of(client: Client, **query: str) -> dict[str, Any]:
    answer = client.http.get(f"{PREFIX}/commits", params=query)
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize(
    ("step", "lands"),
    [
        ("before_put", False),
        ("before_version", False),
        ("after_version", True),
        ("after_hint", True),
        ("after_put", True),
    ],
)
def test_commit_cut_off_by_a_kill_is_a_whole_version_or_none(
    server: CrashingServer, folder: Path, step: str, lands: bool
) -> None:
    client = Client(server.url)
    client.make_table("t", PREFIX)
    assert commit(client, "mark-before").status_code == 200
    server.arm(step)

    with pytest.raises(httpx.TransportError):
        commit(client, "mark-cut-off")
    assert server.wait_until_dead() != 0
    server.start()

    loaded = client.load("t", PREFIX)
    check_table(loaded, {"mark-before"}, {"mark-before", "mark-cut-off"})
    assert ("mark-cut-off" in loaded["metadata"]["properties"]) is lands
    assert names_in(folder) == [f"v{number}.metadata.json" for number in range(1, 4 if lands else 3)]
    assert commit(client, "mark-after").status_code == 200
    check_table(
        client.load("t", PREFIX),
        {"mark-before", "mark-after"},
        {"mark-before", "mark-cut-off", "mark-after"},
    )
    hint = folder.joinpath("ns", "t", "metadata", "version-hint.text").read_text()
    assert names_in(folder)[-1] == f"v{hint}.metadata.json"


@pytest.mark.parametrize("step", ["before_version", "after_version"])
def test_creation_cut_off_by_a_kill_is_a_table_or_none(
    server: CrashingServer, folder: Path, step: str
) -> None:
    client = Client(server.url)
    client.http.post(f"{PREFIX}/namespaces", json={"namespace": ["ns"]}).raise_for_status()
    server.arm(step)

    with pytest.raises(httpx.TransportError):
        client.make_table("t", PREFIX)
    server.wait_until_dead()
    server.start()

    exists = client.http.head(TABLE).status_code == 204
    assert exists is (step == "after_version")
    if not exists:
        client.make_table("t", PREFIX)
    assert commit(client, "mark-after").status_code == 200


def test_after_a_kill_nothing_is_claimed_that_only_files_know(server: CrashingServer, folder: Path) -> None:
    client = Client(server.url)
    client.make_table("t", PREFIX)
    assert commit(client, "mark-before", **{"X-Request-Id": "first"}).status_code == 200
    (first,) = receipt_of(client, **{"request-id": "first"})["commits"]
    assert (first["outcome"], first["changes"][0]["metadata-version"]) == ("landed", 2)
    server.arm("after_hint")
    with pytest.raises(httpx.TransportError):
        commit(client, "mark-cut-off", **{"X-Request-Id": "second"})
    server.wait_until_dead()
    server.start()

    answer = receipt_of(client, **{"request-id": "second"})

    assert "mark-cut-off" in client.load("t", PREFIX)["metadata"]["properties"]
    assert "only the files of the table say whether it landed" in answer["error"]["message"]


def test_a_commit_with_a_snapshot_is_answered_by_the_files_if_it_is_sent_again(
    server: CrashingServer, folder: Path
) -> None:
    client = Client(server.url)
    client.make_table("t", PREFIX)
    snapshot = {
        "snapshot-id": 77,
        "sequence-number": 1,
        "timestamp-ms": client.load("t", PREFIX)["metadata"]["last-updated-ms"],
        "manifest-list": f"file://{folder}/ns/t/metadata/snap-77.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    main = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 77}
    body = {
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}],
        "updates": [{"action": "add-snapshot", "snapshot": snapshot}, main],
    }
    server.arm("after_version")
    with pytest.raises(httpx.TransportError):
        client.http.post(TABLE, json=body)
    server.wait_until_dead()
    server.start()

    again = client.http.post(TABLE, json=body)

    assert again.status_code == 200, again.text
    assert again.json()["metadata"]["current-snapshot-id"] == 77
    assert names_in(folder) == ["v1.metadata.json", "v2.metadata.json"]


def test_a_drop_cut_off_by_a_kill_can_be_sent_again(server: CrashingServer, folder: Path) -> None:
    client = Client(server.url)
    client.make_table("t", PREFIX)
    commit(client, "mark-before")
    server.arm("dropped_but_versions")
    with pytest.raises(httpx.TransportError):
        client.http.delete(TABLE, params={"purgeRequested": "true"})
    server.wait_until_dead()
    server.start()

    assert client.http.delete(TABLE, params={"purgeRequested": "true"}).status_code == 204

    assert not folder.joinpath("ns", "t").exists()
    assert client.http.head(TABLE).status_code == 404
