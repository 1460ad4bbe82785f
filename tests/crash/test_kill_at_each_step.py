"""A server killed at each named step of a commit: nothing lost, nothing invented."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.builders.folders import files_below
from tests.crash.crashes import Client, CrashingServer, check_table
from tests.e2e.patience import wait_until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("step", "lands"),
    [("before_write", False), ("after_write", False), ("before_put", False), ("after_put", True)],
)
def test_commit_cut_off_by_a_kill_landed_wholly_or_not_at_all(
    server: CrashingServer, step: str, lands: bool
) -> None:
    client = Client(server.url)
    client.make_table("t")
    assert client.commit("t", "mark-before").status_code == 200
    server.arm(step)

    with pytest.raises(httpx.TransportError):
        client.commit("t", "mark-cut-off")
    assert server.wait_until_dead() != 0
    server.start()

    loaded = client.load("t")
    check_table(loaded, {"mark-before"}, {"mark-before", "mark-cut-off"})
    assert ("mark-cut-off" in loaded["metadata"]["properties"]) is lands
    assert client.commit("t", "mark-after").status_code == 200
    check_table(
        client.load("t"), {"mark-before", "mark-after"}, {"mark-before", "mark-cut-off", "mark-after"}
    )


def test_commit_sent_again_after_a_kill_has_one_effect(server: CrashingServer) -> None:
    client = Client(server.url)
    client.make_table("t")
    body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"mark-1": "here"}}]}
    path, headers = "/v1/namespaces/ns/tables/t", {"Idempotency-Key": "0193-only-once"}
    server.arm("after_put")
    with pytest.raises(httpx.TransportError):
        client.http.post(path, json=body, headers=headers)
    server.wait_until_dead()
    server.start()
    landed = client.load("t")

    again = client.http.post(path, json=body, headers=headers)

    assert again.status_code == 200
    assert again.json()["metadata-location"] == landed["metadata-location"]
    assert client.load("t") == landed


def test_transaction_cut_off_by_a_kill_changed_all_tables_or_none(server: CrashingServer) -> None:
    client = Client(server.url)
    names = ("a", "b", "c")
    for name in names:
        client.make_table(name)
    for step, lands in (("after_write", False), ("before_put", False), ("after_put", True)):
        mark = f"mark-{step}"
        changes = [
            {
                "identifier": {"namespace": ["ns"], "name": name},
                "requirements": [],
                "updates": [{"action": "set-properties", "updates": {mark: "here"}}],
            }
            for name in names
        ]
        server.arm(step)
        with pytest.raises(httpx.TransportError):
            client.http.post("/v1/transactions/commit", json={"table-changes": changes})
        server.wait_until_dead()
        server.start()

        found = [mark in client.load(name)["metadata"]["properties"] for name in names]

        assert found == [lands] * 3, step


def test_purge_goes_on_after_a_kill(server: CrashingServer) -> None:
    client = Client(server.url)
    client.make_table("t")
    folder = server.folder / "warehouse"
    assert client.http.delete("/v1/namespaces/ns/tables/t?purgeRequested=true").status_code == 204
    server.kill()
    server.forget_leases()

    server.start()

    wait_until(lambda: not [path for path in files_below(folder) if path.name.endswith(".metadata.json")])


def test_server_told_to_stop_finishes_running_commits(server: CrashingServer) -> None:
    client = Client(server.url)
    client.make_table("t")
    server.arm("pause before_put")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(client.commit, "t", "mark-1")
        while server.crash_at_file.exists():
            threading.Event().wait(0.01)

        server.terminate()

        assert running.result().status_code == 200
    server.start()
    check_table(client.load("t"), {"mark-1"}, {"mark-1"})
