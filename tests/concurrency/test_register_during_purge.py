"""A table that is registered while its purge runs: refused, or it keeps every file."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from app.database.connections.database import Database
from app.engine.model.ids import Location
from app.engine.model.table_metadata import read_table_metadata
from app.fileio.locations import local_path
from app.fileio.memory import MemoryFiles
from tests.builders.table_files import TableFiles
from tests.concurrency.deletions import wait_for_deletions
from tests.concurrency.writers import at_once, make_tables

pytestmark = pytest.mark.slow
DATA_FILES, CLIENTS = 600, 6


class UnsyncedFiles(MemoryFiles):
    """Files on disk that need not survive a power failure."""

    def write_new(self, location: Location, content: bytes) -> None:
        path = Path(local_path(location))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def filled_table(url: str, name: str = "t", data_files: int = DATA_FILES) -> tuple[str, set[Path]]:
    """Return the metadata location of a new table with many files, and all its files."""
    make_tables(url, name)
    with httpx.Client(base_url=url, timeout=60) as http:
        loaded = http.get(f"/v1/namespaces/ns/tables/{name}").json()
        metadata = read_table_metadata(httpx.Response(200, json=loaded["metadata"]).content)
        names = [f"f{number}" for number in range(data_files)]
        made = TableFiles(UnsyncedFiles()).snapshot(metadata, names)
        ref = {
            "action": "set-snapshot-ref",
            "ref-name": "main",
            "snapshot-id": made.snapshot_id,
            "type": "branch",
        }
        add = {"action": "add-snapshot", "snapshot": made.model_dump(by_alias=True, exclude_none=True)}
        answer = http.post(
            f"/v1/namespaces/ns/tables/{name}", json={"requirements": [], "updates": [add, ref]}
        )
    answer.raise_for_status()
    folder = Path(local_path(metadata.location))
    return answer.json()["metadata-location"], {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("attempt", range(2))
def test_register_during_a_purge(servers: list[str], database_url: str, attempt: int) -> None:
    location, files = filled_table(servers[0])
    clients = [httpx.Client(base_url=servers[number % len(servers)], timeout=60) for number in range(CLIENTS)]

    def work(number: int) -> int:
        if number == 0:
            return clients[0].delete("/v1/namespaces/ns/tables/t?purgeRequested=true").status_code
        threading.Event().wait(0.03 * number * (attempt + 1))
        body = {"name": f"again{number}", "metadata-location": location}
        return clients[number].post("/v1/namespaces/ns/register", json=body).status_code

    statuses = at_once(CLIENTS, work)
    with closing(Database.open(database_url)) as database:
        wait_for_deletions(database)

    assert statuses[0] == 204
    assert set(statuses[1:]) <= {200, 404, 409}, statuses
    for number, status in enumerate(statuses):
        if status == 200:
            loaded = clients[0].get(f"/v1/namespaces/ns/tables/again{number}")
            assert loaded.status_code == 200, loaded.text
            assert [path for path in files if not path.exists()] == []
    if 200 not in statuses:
        assert [path for path in files if path.exists()] == []
