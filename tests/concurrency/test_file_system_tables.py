"""Two servers that know nothing of each other write the file-system tables of one folder."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.crash.crashes import SCHEMA
from tests.servers.icetower import icetower_process

pytestmark = pytest.mark.slow

WRITERS, COMMITS = 4, 10
TABLE = "/v1/files/namespaces/ns/tables/t"


def test_no_acknowledged_commit_of_two_servers_is_lost(tmp_path: Path) -> None:
    """Each has a database of its own, so that files alone decide; old versions are deleted meanwhile."""
    root = tmp_path / "tables"
    root.mkdir()
    with ExitStack() as held:
        urls = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            urls.append(held.enter_context(icetower_process(tmp_path / name, log_level="error")))
        settings = {"name": "files", "root-location": f"file://{root}", "layout": "hadoop"}
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
    versions = sorted(root.joinpath("ns", "t", "metadata").glob("v*"))
    assert len(versions) <= 4
    assert len({path.name.split(".")[0] for path in versions}) == len(versions)
