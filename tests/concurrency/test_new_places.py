"""Tables that two servers create at once: who gets the folder of its name has it alone, and keeps every file."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.database.connections.database import Database
from app.database.deletions.file_deletions import FileDeletions
from app.fileio.locations import local_path
from tests.builders.error_answers import check_error_answer
from tests.builders.staged_tables import land
from tests.concurrency.deletions import wait_for_deletions
from tests.concurrency.test_register_during_purge import filled_table
from tests.concurrency.writers import SCHEMA, at_once

pytestmark = pytest.mark.slow
ROUNDS = 8
PURGED_FILES = 400


@pytest.fixture
def clients(servers: list[str]) -> list[httpx.Client]:
    return [httpx.Client(base_url=url, timeout=60) for url in servers]


def create(client: httpx.Client, namespace: str, name: str, **more: Any) -> httpx.Response:
    return client.post(f"/v1/namespaces/{namespace}/tables", json={"name": name, "schema": SCHEMA, **more})


def location_of(answer: httpx.Response) -> str:
    location: str = answer.raise_for_status().json()["metadata"]["location"]
    return location


def stage(client: httpx.Client, namespace: str, name: str) -> dict[str, Any]:
    staged = create(client, namespace, name, **{"stage-create": True}).raise_for_status().json()
    metadata: dict[str, Any] = staged["metadata"]
    return metadata


def check_apart(locations: list[str]) -> None:
    folders = [f"{location}/" for location in locations]
    for number, folder in enumerate(folders):
        assert not any(other.startswith(folder) for other in folders[:number] + folders[number + 1 :]), (
            folders
        )


def test_twins_never_lie_inside_each_other(clients: list[httpx.Client]) -> None:
    """Table `b` of namespace `a`, table `c` of `a.b`, and `d` of `a.b.c` all want folders that overlap."""
    plain = 0
    for number in range(ROUNDS):
        top = f"n{number}"
        levels = [[top], [top, "b"], [top, "b", "c"]]
        for each in levels:
            clients[0].post("/v1/namespaces", json={"namespace": each}).raise_for_status()
        wanted = [("%1F".join(each), name) for each, name in zip(levels, "bcd", strict=True)]
        staged = [stage(clients[n % 2], *each) for n, each in enumerate(wanted)] if number % 2 else []

        def work(
            n: int, wanted: list[tuple[str, str]] = wanted, staged: list[Any] = staged
        ) -> httpx.Response:
            client = clients[n % 2]
            return land(client, *wanted[n], staged[n]) if staged and n != 1 else create(client, *wanted[n])

        answers = at_once(3, work)

        made = [location_of(answer) for answer in answers if answer.status_code == 200]
        check_apart(made)
        plain += sum(location.endswith(("/b", "/c", "/d")) for location in made)
        for answer in answers:
            if answer.status_code != 200:
                assert staged
                check_error_answer(answer.json(), 409)
                assert "belongs to another table by now; create it anew" in answer.json()["error"]["message"]
    assert plain >= ROUNDS, "one of them is free to have its own"


def test_a_table_that_comes_back_finds_its_folder_as_it_left_it(clients: list[httpx.Client]) -> None:
    clients[0].post("/v1/namespaces", json={"namespace": ["a"]}).raise_for_status()
    first = location_of(create(clients[0], "a", "t"))
    clients[1].delete("/v1/namespaces/a/tables/t").raise_for_status()

    second = location_of(create(clients[0], "a", "t"))
    clients[1].post(
        "/v1/undrop", json={"namespace": ["a"], "name": "t", "as": {"name": "u"}}
    ).raise_for_status()
    clients[0].post(
        "/v1/tables/rename",
        json={
            "source": {"namespace": ["a"], "name": "u"},
            "destination": {"namespace": ["a"], "name": "v"},
        },
    ).raise_for_status()
    third = location_of(create(clients[1], "a", "u"))

    assert first.endswith("/a/t")
    assert second.startswith(f"{first}-")
    assert third.endswith("/a/u")
    assert location_of(clients[0].get("/v1/namespaces/a/tables/v")) == first
    check_apart([first, second, third])


def test_a_purge_never_touches_the_table_that_has_its_name_next(
    servers: list[str], clients: list[httpx.Client], database_url: str
) -> None:
    """Created again and again while files go: with a folder of its own, and in the end with the same one."""
    locations: list[str] = []
    with closing(Database.open(database_url)) as database:
        queue = FileDeletions(database)
        location, _ = filled_table(servers[0], "t", PURGED_FILES)
        place = location.rpartition("/metadata/")[0]
        clients[0].delete("/v1/namespaces/ns/tables/t?purgeRequested=true").raise_for_status()
        while not locations or locations[-1] != place:
            number = len(locations)
            is_waiting = bool(queue.counts().get("queued"))
            locations.append(location_of(create(clients[number % 2], "ns", "t")))
            assert is_waiting or locations[-1] == place, "free as soon as the purge is over"
            renamed = {"namespace": ["ns"], "name": f"t{number}"}
            clients[0].post(
                "/v1/tables/rename",
                json={"source": {"namespace": ["ns"], "name": "t"}, "destination": renamed},
            ).raise_for_status()
        wait_for_deletions(database)

    check_apart(locations)
    for number, where in enumerate(locations):
        loaded = clients[1].get(f"/v1/namespaces/ns/tables/t{number}").raise_for_status().json()
        assert loaded["metadata"]["location"] == where
        assert Path(local_path(loaded["metadata-location"])).is_file()


def drop_and_create(client: httpx.Client, files: int) -> Callable[[int], list[str]]:
    def work(_number: int) -> list[str]:
        landed = []
        for _ in range(files):
            made = create(client, "ns", "same")
            if made.status_code == 200:
                landed.append(made.json()["metadata-location"])
            client.delete("/v1/namespaces/ns/tables/same?purgeRequested=true")
        return landed

    return work


def test_a_name_that_is_made_and_purged_all_the_time_has_its_files_while_it_is_there(
    clients: list[httpx.Client], database_url: str
) -> None:
    clients[0].post("/v1/namespaces", json={"namespace": ["ns"]}).raise_for_status()
    makers = [drop_and_create(client, 15) for client in clients]

    landed = at_once(2, lambda number: makers[number](number))

    assert sum(map(len, landed)) >= 15
    last = create(clients[0], "ns", "same")
    if last.status_code == 409:
        last = clients[0].get("/v1/namespaces/ns/tables/same")
    with closing(Database.open(database_url)) as database:
        wait_for_deletions(database)
    assert Path(local_path(last.raise_for_status().json()["metadata-location"])).is_file()
    assert clients[1].get("/v1/namespaces/ns/tables/same").status_code == 200
