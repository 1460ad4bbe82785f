"""A dropped table that several want at once: back, purged, over, or under a new name. One of them has it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from app.database.connections.database import Database
from app.database.dropped import DroppedThings
from app.fileio.locations import local_path
from tests.builders.error_answers import check_error_answer
from tests.concurrency.deletions import wait_for_deletions
from tests.concurrency.test_register_during_purge import filled_table
from tests.concurrency.writers import at_once

pytestmark = pytest.mark.slow
ROUNDS = 12
MESSAGES = {
    404: ("Nothing that was dropped can come back under", "cannot come back any more", "File does not exist"),
    409: (
        "Cannot undrop", "already exists", "are being deleted", "was deleted", "Table with same name already exists",
    ),
}  # fmt: skip
"""What losers may hear."""


def test_one_of_those_who_want_it_has_it(servers: list[str], database_url: str) -> None:
    with closing(Database.open(database_url)) as database:
        for number in range(ROUNDS):
            one_round(servers, database, number)


def one_round(servers: list[str], database: Database, number: int) -> None:
    location, files = filled_table(servers[0], f"t{number}", 40)
    clients = [httpx.Client(base_url=servers[each % len(servers)], timeout=60) for each in range(6)]
    table = f"/v1/namespaces/ns/tables/t{number}"
    before = clients[0].get(table).json()
    clients[0].delete(table).raise_for_status()
    (entry,) = [
        each for each in clients[0].get("/v1/dropped").json()["dropped"] if each["name"] == f"t{number}"
    ]
    ended: list[int] = []

    def end() -> httpx.Response:
        # What housekeeping does when the time is over, whatever its clock is like.
        ended.append(DroppedThings(database).end(entry["until-ms"] + 1))
        return httpx.Response(204)

    schema = before["metadata"]["schemas"][0]
    wishes: list[Callable[[], httpx.Response]] = [
        lambda: clients[0].post("/v1/undrop", json={"id": entry["id"]}),
        lambda: clients[1].post("/v1/undrop", json={"id": entry["id"], "as": {"name": f"back{number}"}}),
        lambda: clients[2].post("/v1/dropped/purge", json={"id": entry["id"]}),
        end
        if number % 2
        else lambda: clients[3].post("/v1/undrop", json={"namespace": ["ns"], "name": f"t{number}"}),
        lambda: clients[4].post(
            "/v1/namespaces/ns/register", json={"name": f"again{number}", "metadata-location": location}
        ),
        lambda: clients[5].post("/v1/namespaces/ns/tables", json={"name": f"t{number}", "schema": schema}),
    ]
    order = [(number + each) % len(wishes) for each in range(len(wishes))]
    answers = at_once(len(wishes), lambda each: wishes[order[each]]())
    by_wish = dict(zip(order, answers, strict=True))

    for answer in answers:
        assert answer.status_code in {200, 204, 404, 409}, answer.text
        if answer.status_code >= 400:
            check_error_answer(answer.json(), answer.status_code)
            message = answer.json()["error"]["message"]
            assert any(text in message for text in MESSAGES[answer.status_code]), message
    taken = [wish for wish in (0, 1, 2, 3) if by_wish[wish].status_code == 200]
    assert len(taken) + sum(ended) <= 1, "one takes it"
    is_purged, is_back = 2 in taken, bool({0, 1, 3} & set(taken))
    is_registered = by_wish[4].status_code == 200
    assert taken or sum(ended) or is_registered, "somebody got it"
    wait_for_deletions(database)
    if is_back or is_registered:
        name = next(
            each["name"]
            for each in clients[0].get("/v1/namespaces/ns/tables").json()["identifiers"]
            if clients[0].get(f"/v1/namespaces/ns/tables/{each['name']}").json()["metadata-location"]
            == location
        )
        loaded = clients[0].get(f"/v1/namespaces/ns/tables/{name}").json()
        assert loaded["metadata"] == before["metadata"]
    if is_back or is_registered or not is_purged:
        assert [path for path in files if not path.exists()] == []
    else:
        assert [path for path in files if path.exists()] == []
    if by_wish[5].status_code == 200:
        made = by_wish[5].json()["metadata-location"]
        assert clients[0].get(table).json()["metadata-location"] == made
        assert Path(local_path(made)).exists()
    for client in clients:
        client.close()
