"""Two servers that know nothing of each other write the file-system tables of one folder."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from app.engine.model.ids import Location
from app.fileio.schemes import SchemedFiles, files_for
from tests.crash.crashes import SCHEMA
from tests.servers.icetower import icetower_process
from tests.servers.webhdfs import HdfsPlace

pytestmark = pytest.mark.slow

WRITERS, COMMITS = 4, 10
TABLE = "/v1/files/namespaces/ns/tables/t"


@pytest.mark.parametrize("store", ["local", pytest.param("hdfs", marks=pytest.mark.nightly)])
def test_no_acknowledged_commit_of_two_servers_is_lost(
    tmp_path: Path, store: str, request: pytest.FixtureRequest
) -> None:
    """Each has a database of its own, so that files alone decide; old versions are deleted meanwhile."""
    storage, root = {}, f"file://{tmp_path}/tables"
    if store == "hdfs":
        hdfs: HdfsPlace = request.getfixturevalue("hdfs")
        storage, root = hdfs.storage, hdfs.new_root()
    files = files_for(storage)
    assert isinstance(files, SchemedFiles)
    files.create_folder(Location(root))
    with ExitStack() as held:
        urls = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            urls.append(held.enter_context(icetower_process(tmp_path / name, log_level="error")))
        settings = {"name": "files", "root-location": root, "layout": "hadoop", "storage": storage}
        for url in urls:
            httpx.post(f"{url}/management/v1/warehouses", json=settings).raise_for_status()
        httpx.post(f"{urls[0]}/v1/files/namespaces", json={"namespace": ["ns"]}).raise_for_status()
        table = {
            "name": "t",
            "schema": SCHEMA,
            "properties": {
                "write.metadata.delete-after-commit.enabled": "true",
                "write.metadata.previous-versions-max": "2",
            },
        }
        made = [httpx.post(f"{url}/v1/files/namespaces/ns/tables", json=table) for url in urls]
        assert [answer.status_code for answer in made] == [200, 409]
        together = threading.Barrier(WRITERS)

        def write(writer: int) -> set[str]:
            landed = set()
            together.wait()
            for number in range(COMMITS):
                mark = f"mark-{writer}-{number}"
                codec = "gzip" if number % 3 == writer % 3 else "none"
                updates = {mark: "here", "write.metadata.compression-codec": codec}
                body = {"requirements": [], "updates": [{"action": "set-properties", "updates": updates}]}
                answer = httpx.post(f"{urls[writer % 2]}{TABLE}", json=body, timeout=60)
                if answer.status_code == 200:
                    landed.add(mark)
                else:
                    assert answer.status_code == 409, answer.text
            return landed

        with ThreadPoolExecutor(WRITERS) as pool:
            landed = set().union(*pool.map(write, range(WRITERS)))

        loaded = [httpx.get(f"{url}{TABLE}").raise_for_status().json() for url in urls]

    assert loaded[0] == loaded[1]
    marks = {name for name in loaded[0]["metadata"]["properties"] if name.startswith("mark-")}
    assert marks == landed
    assert len(landed) > WRITERS * COMMITS // 2
    found = files.list_folder(Location(f"{root}/ns/t/metadata")) or []
    versions = [entry.name for entry in found if entry.name.startswith("v")]
    assert len(versions) <= 4
    assert len({name.split(".")[0] for name in versions}) == len(versions)
    assert not [entry.name for entry in found if entry.name.endswith(".tmp")]
