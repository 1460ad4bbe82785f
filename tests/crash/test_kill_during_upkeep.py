"""A server killed at each step of upkeep of deletes and statistics: the table is whole, the work is done once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from app.engine.model.files.manifests import FileContent
from app.engine.model.ids import Location
from tests.builders.claimed_files import ClaimingWriter
from tests.crash.crashes import Client, CrashingServer, check_table

pytestmark = pytest.mark.slow

KEY = {"Idempotency-Key": "0193-upkeep-once"}
STEPS = [
    ("in_line", False),
    ("before_write", False),
    ("after_write", False),
    ("before_put", False),
    ("after_put", True),
]
"""What each of them goes through in the end, and whether it has landed by then."""


@pytest.fixture
def writer(server: CrashingServer) -> ClaimingWriter:
    """A table with a data file, a delete file that applies to it, and one that applies to nothing."""
    client = Client(server.url).http
    client.post("/v1/namespaces", json={"namespace": ["a"]}).raise_for_status()
    made = ClaimingWriter(client, "t")
    deletes: dict[str, Any] = {"content": FileContent.POSITION_DELETES, "record_count": 1}
    made.commit(
        [made.file()],
        [
            made.file(file_path=Location(f"{made.location}/data/used.parquet"), **deletes),
            made.file(
                file_path=Location(f"{made.location}/data/dangling.parquet"), partition=(2,), **deletes
            ),
        ],
    )
    return made


def killed_while(server: CrashingServer, writer: ClaimingWriter, what: str, step: str) -> dict[str, Any]:
    """Kill the server at a step of a request, start it again, and return the table as it is then."""
    server.arm(step)
    with pytest.raises(httpx.TransportError):
        writer.client.post(f"{writer.path}/{what}", json={}, headers=KEY)
    assert server.wait_until_dead() != 0
    server.start()
    loaded: dict[str, Any] = writer.client.get(writer.path).json()
    check_table(loaded, set(), set())
    return loaded


@pytest.mark.parametrize(("step", "lands"), [("dangling_found", False), *STEPS])
def test_removal_of_dangling_deletes_cut_off_by_a_kill_is_done_once(
    server: CrashingServer, writer: ClaimingWriter, step: str, lands: bool
) -> None:
    found = killed_while(server, writer, "remove-dangling-deletes", step)
    again = writer.client.post(f"{writer.path}/remove-dangling-deletes", json={}, headers=KEY)

    assert len(found["metadata"]["snapshots"]) == 1 + lands
    assert again.status_code == 200, again.text
    assert again.json()["removed-position-delete-files"] == 1
    loaded = writer.client.get(writer.path).json()["metadata"]
    assert [item["snapshot-id"] for item in loaded["snapshots"]] == [1, again.json()["snapshot-id"]]
    files = writer.client.get(f"{writer.path}/health").json()["files"]
    assert (files["data-files"], files["delete-files"], files["dangling-deletes"]) == (1, 1, 0)


@pytest.mark.parametrize(("step", "lands"), [("statistics_stored", False), *STEPS])
def test_partition_statistics_cut_off_by_a_kill_are_written_once(
    server: CrashingServer, writer: ClaimingWriter, step: str, lands: bool
) -> None:
    found = killed_while(server, writer, "partition-statistics", step)
    again = writer.client.post(f"{writer.path}/partition-statistics", json={}, headers=KEY)

    assert len(found["metadata"].get("partition-statistics", [])) == lands
    assert again.status_code == 200, again.text
    (named,) = writer.client.get(writer.path).json()["metadata"]["partition-statistics"]
    assert named["statistics-path"] == again.json()["statistics-path"]
    path = Path(named["statistics-path"].removeprefix("file://"))
    assert path.stat().st_size == named["file-size-in-bytes"]
    rows = pq.read_table(path).to_pylist()
    assert [(row["partition"]["part"], row["data_file_count"]) for row in rows] == [(1, 1), (2, 0)]
    assert [row["position_delete_file_count"] for row in rows] == [1, 1]
