"""What a killed server leaves behind is collected in the end, and nothing that a table reaches."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyiceberg.catalog import load_catalog

from app.engine.model.files.manifests import FileContent
from app.engine.model.ids import Location
from tests.builders.claimed_files import ClaimingWriter
from tests.builders.folders import files_below
from tests.builders.http_appends import Appender, make_rebasing_table
from tests.builders.parquet_files import parquet_rows
from tests.crash.crashes import Client, CrashingServer

pytestmark = pytest.mark.slow

PATH = "/v1/namespaces/ns/tables/t"


def append_body(location: str, name: str, **more: Any) -> dict[str, Any]:
    """Write a data file and return the request that appends it by reference."""
    path = Path(location.removeprefix("file://"), "data", f"{name}.parquet")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(parquet_rows(id=[1, 2]))
    return {"files": [{"file-path": f"{location}/data/{path.name}"}], **more}


def make_table(client: Client) -> str:
    """Make a table with two snapshots on main and one more on a branch; return its location."""
    location: str = client.make_table("t")["metadata"]["location"]
    for name in ("1", "2"):
        assert client.http.post(f"{PATH}/append", json=append_body(location, name)).status_code == 200
    first = client.load("t")["metadata"]["snapshots"][0]["snapshot-id"]
    ref = {"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": first}
    assert client.http.post(PATH, json={"requirements": [], "updates": [ref]}).status_code == 200
    on_branch = client.http.post(f"{PATH}/append", json=append_body(location, "3", branch="b"))
    assert on_branch.status_code == 200, on_branch.text
    return location


def append(client: Client, location: str) -> httpx.Response:
    return client.http.post(f"{PATH}/append", json=append_body(location, "4"))


def rewrite(client: Client, _location: str) -> httpx.Response:
    return client.http.post(f"{PATH}/rewrite-manifests", json={"all": True})


def pick(client: Client, _location: str) -> httpx.Response:
    refs = client.load("t")["metadata"]["refs"]
    return client.http.put(f"{PATH}/refs/main", json={"cherry-pick": refs["b"]["snapshot-id"]})


def files_of(location: str) -> set[Path]:
    return files_below(Path(location.removeprefix("file://")))


def die(server: CrashingServer, step: str, request: Callable[[], object], location: str) -> set[Path]:
    """Have the server die in a request, start it again, and return the files that it left behind."""
    before = files_of(location)
    server.arm(step)
    with pytest.raises(httpx.TransportError):
        pytest.fail(f"answered: {request()}")
    assert server.wait_until_dead() != 0
    server.start()
    return {path for path in files_of(location) - before if path.parent.name == "metadata"}


def check_collected(server: CrashingServer, location: str, left: set[Path], needed: set[Path]) -> None:
    server.let_time_pass()
    deadline = time.monotonic() + 60
    while left & files_of(location) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left & files_of(location)
    assert needed <= files_of(location)


@pytest.mark.parametrize(
    ("request_it", "step", "kinds"),
    [
        (append, "before_put", {"m0.avro", "snap", "json"}),
        (rewrite, "manifests_stored", {"m0.avro"}),
        (rewrite, "before_put", {"m0.avro", "snap", "json"}),
        (pick, "before_put", {"m0.avro", "snap", "json"}),
    ],
)
def test_what_was_written_for_a_commit_that_died_is_collected(
    server: CrashingServer, request_it: Callable[[Client, str], httpx.Response], step: str, kinds: set[str]
) -> None:
    client = Client(server.url)
    location = make_table(client)
    left = die(server, step, lambda: request_it(client, location), location)
    assert {kind for kind in ("m0.avro", "snap", "json") for path in left if kind in path.name} == kinds
    done = request_it(client, location)
    assert done.status_code == 200, done.text
    assert client.commit("t", "mark-1").status_code == 200
    needed = files_of(location) - left

    check_collected(server, location, left, needed)

    rows = load_catalog("t", type="rest", uri=server.url).load_table("ns.t").scan().to_arrow()
    assert rows.num_rows >= 4


@pytest.mark.parametrize(
    ("what", "step"),
    [("partition-statistics", "statistics_stored"), ("remove-dangling-deletes", "before_put")],
)
def test_what_upkeep_had_written_is_collected(server: CrashingServer, what: str, step: str) -> None:
    client = Client(server.url)
    client.http.post("/v1/namespaces", json={"namespace": ["a"]}).raise_for_status()
    writer = ClaimingWriter(client.http, "t")
    dangling = writer.file(
        file_path=Location(f"{writer.location}/data/dangling.parquet"),
        partition=(2,),
        content=FileContent.POSITION_DELETES,
        record_count=1,
    )
    writer.commit([writer.file()], [dangling])
    request = partial(client.http.post, f"{writer.path}/{what}", json={})
    left = die(server, step, request, writer.location)
    assert any(path.suffix in {".parquet", ".avro"} for path in left)
    assert request().status_code == 200
    updates = [{"action": "set-properties", "updates": {"mark": "1"}}]
    client.http.post(writer.path, json={"requirements": [], "updates": updates}).raise_for_status()
    needed = files_of(writer.location) - left

    check_collected(server, writer.location, left, needed)


def test_lists_of_a_rebase_that_died_are_collected(server: CrashingServer) -> None:
    make_rebasing_table(server.url, "t")
    client, rival = Appender(server.url, 1), Appender(server.url, 2)
    empty = client.load("t")
    first, late = rival.prepare("t", empty), client.prepare("t", empty)
    assert rival.send(first).status_code == 200
    left = die(server, "before_put", lambda: client.send(late), empty.location)
    assert any(path.name.startswith("snap-") for path in left)
    assert client.send(late).status_code == 200
    assert Client(server.url).commit("t", "mark-1").status_code == 200
    needed = files_of(empty.location) - left

    check_collected(server, empty.location, left, needed)

    assert sorted(client.live_files("t")) == sorted([first.file_path, late.file_path])


def test_a_purge_comes_back_for_what_killed_servers_left(server: CrashingServer) -> None:
    client = Client(server.url)
    location = make_table(client)
    left = die(server, "before_put", lambda: append(client, location), location)
    assert len(left) == 3
    assert client.http.delete(f"{PATH}?purgeRequested=true").status_code == 204
    root = Path(location.removeprefix("file://"))
    own = root / "data" / "4.parquet"  # a client's file, that no commit has taken in
    deadline = time.monotonic() + 60
    while files_of(location) != left | {own} and time.monotonic() < deadline:
        time.sleep(0.05)
    assert files_of(location) == left | {own}
    own.unlink()

    check_collected(server, location, left, set())

    deadline = time.monotonic() + 60
    while root.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not root.exists()
