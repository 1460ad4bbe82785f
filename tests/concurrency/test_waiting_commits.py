"""Commits that wait for others to one table: they hold no thread, and land together."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from app.main import create_app
from tests.builders.http_catalog import SCHEMA, http_catalog, make_namespace, set_properties, settings_in

WAITING = 24


def commit(url: str, name: str) -> int:
    """Set a property of a table without requirements."""
    body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {name: "set"}}]}
    return httpx.post(f"{url}/v1/namespaces/ns/tables/busy", json=body, timeout=60).status_code


def test_waiting_commits_hold_no_thread_and_land_together(tmp_path: Path) -> None:
    begun, is_armed = threading.Semaphore(0), threading.Event()
    at_work, let_go = threading.Event(), threading.Event()

    def step(name: str) -> None:
        if name == "before_put" and is_armed.is_set():
            is_armed.clear()
            at_work.set()
            assert let_go.wait(30)
        if name == "in_line" and at_work.is_set():
            begun.release()

    with http_catalog(tmp_path, step=step, threads=16) as api, ThreadPoolExecutor(WAITING) as threads:
        make_namespace(api, "ns")
        for table in ("busy", "quiet"):
            api.post("/v1/namespaces/ns/tables", json={"name": table, "schema": SCHEMA}).raise_for_status()
        is_armed.set()
        url = str(api.base_url)
        answers = [threads.submit(commit, url, "first")]
        assert at_work.wait(30)
        answers += [threads.submit(commit, url, f"name{number}") for number in range(WAITING - 1)]
        for _ in range(WAITING - 1):
            assert begun.acquire(timeout=30)

        # More wait than there are threads, and others still find one.
        renamed = {
            "source": {"namespace": ["ns"], "name": "quiet"},
            "destination": {"namespace": ["ns"], "name": "q"},
        }
        assert api.post("/v1/tables/rename", json=renamed).status_code == 204
        let_go.set()

        assert [answer.result(60) for answer in answers] == [200] * WAITING
        loaded = api.get("/v1/namespaces/ns/tables/busy").json()["metadata"]
        assert len(loaded["properties"].keys() & {"first", *(f"name{n}" for n in range(WAITING))}) == WAITING
        # One file for the first commit, and one for all that came meanwhile; the log names those before the last.
        assert len(loaded["metadata-log"]) == 2


def test_commit_that_is_broken_off_as_it_enters_the_line_blocks_no_other(tmp_path: Path) -> None:
    armed: set[str] = set()
    reached = {name: threading.Event() for name in ("before_put", "in_line")}
    let_go = {name: threading.Event() for name in ("before_put", "in_line")}

    def step(name: str) -> None:
        if name in armed:
            armed.remove(name)
            reached[name].set()
            assert let_go[name].wait(30)

    async def course() -> None:
        app = create_app(settings_in(tmp_path), step=step)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8181") as api,
            asyncio.timeout(25),
        ):
            await api.post("/v1/namespaces", json={"namespace": ["ns"]})
            await api.post("/v1/namespaces/ns/tables", json={"name": "busy", "schema": SCHEMA})
            requests = []
            for name in ("before_put", "in_line"):
                armed.add(name)
                commit = api.post("/v1/namespaces/ns/tables/busy", json=set_properties(at=name))
                requests.append(asyncio.create_task(commit))
                await asyncio.to_thread(reached[name].wait, 20)
            works, enters = requests
            enters.cancel()
            await asyncio.wait([enters])
            let_go["in_line"].set()
            let_go["before_put"].set()

            assert (await works).status_code == 200
            again = await api.post("/v1/namespaces/ns/tables/busy", json=set_properties(at="again"))
            assert again.status_code == 200
        assert enters.cancelled()

    asyncio.run(course())
