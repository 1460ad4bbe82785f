"""Sixteen writers in two server processes: linearizable histories, and no writer left behind."""

from __future__ import annotations

import httpx
import pytest

from tests.concurrency.writers import Writer, at_once, check_history, load, make_tables
from tests.servers.modes import MODES

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("mode", MODES, indirect=True)]
WRITERS = 16
COMMITS = 6


def test_writers_of_one_table_all_land_in_one_line(servers: list[str]) -> None:
    make_tables(servers[0], "t")
    writers = [Writer(servers[number % len(servers)], number) for number in range(WRITERS)]

    def work(number: int) -> None:
        for _ in range(COMMITS):
            writers[number].append("t")

    at_once(WRITERS, work)

    check_history(load(servers[0], "t"), writers)
    assert load(servers[0], "t") == load(servers[1], "t")


def test_writers_of_many_tables_do_not_disturb_each_other(servers: list[str]) -> None:
    names = [f"t{number}" for number in range(WRITERS)]
    make_tables(servers[0], *names)
    writers = [Writer(servers[number % len(servers)], number) for number in range(WRITERS)]

    def work(number: int) -> None:
        for _ in range(COMMITS):
            writers[number].append(names[number])

    at_once(WRITERS, work)

    for name, writer in zip(names, writers, strict=True):
        check_history(load(servers[1], name), [writer])
        assert writer.refused == []


def test_blind_changes_of_one_table_all_land_without_the_client_retrying(servers: list[str]) -> None:
    make_tables(servers[0], "t")
    clients = [httpx.Client(base_url=servers[number % len(servers)], timeout=60) for number in range(WRITERS)]

    def work(number: int) -> list[int]:
        statuses = []
        for commit in range(COMMITS):
            updates = [{"action": "set-properties", "updates": {f"w{number}-{commit}": "x"}}]
            answer = clients[number].post(
                "/v1/namespaces/ns/tables/t", json={"requirements": [], "updates": updates}
            )
            statuses.append(answer.status_code)
        return statuses

    statuses = at_once(WRITERS, work)

    wanted = {f"w{number}-{commit}" for number in range(WRITERS) for commit in range(COMMITS)}
    landed = {name for name in load(servers[0], "t")["properties"] if name.startswith("w") and "-" in name}
    assert {status for per_writer in statuses for status in per_writer} == {200}
    assert wanted <= landed


def test_transactions_over_tables_land_wholly_or_not_at_all(servers: list[str]) -> None:
    names = ("a", "b", "c", "d")
    make_tables(servers[0], *names)
    clients = [httpx.Client(base_url=servers[number % len(servers)], timeout=60) for number in range(WRITERS)]

    def work(number: int) -> list[tuple[str, bool]]:
        answered = []
        for commit in range(COMMITS):
            mark = f"w{number}-{commit}"
            # Every writer names the tables in another order: locks must not be taken in that order.
            order = names[number % 4 :] + names[: number % 4]
            # The schema id fails for every third one, on its last table.
            wrong = [{"type": "assert-current-schema-id", "current-schema-id": 7}] if commit % 3 == 2 else []
            changes = [
                {
                    "identifier": {"namespace": ["ns"], "name": name},
                    "requirements": wrong if name == order[-1] else [],
                    "updates": [{"action": "set-properties", "updates": {mark: "x"}}],
                }
                for name in order
            ]
            answer = clients[number].post("/v1/transactions/commit", json={"table-changes": changes})
            assert answer.status_code in (204, 409), answer.text
            assert not (wrong and answer.status_code == 204)
            answered.append((mark, answer.status_code == 204))
        return answered

    answered = [item for per_writer in at_once(WRITERS, work) for item in per_writer]

    acknowledged = {mark for mark, landed in answered if landed}
    for name in names:
        found = {key for key in load(servers[0], name)["properties"] if key.startswith("w") and "-" in key}
        assert {mark for mark, _ in answered} & found == acknowledged
    assert acknowledged


@pytest.mark.parametrize("kind", ["create", "stage", "rename", "register", "view-and-table"])
def test_one_name_has_one_winner(servers: list[str], kind: str) -> None:
    make_tables(servers[0], *(f"source{number}" for number in range(WRITERS)))
    clients = [httpx.Client(base_url=servers[number % len(servers)], timeout=60) for number in range(WRITERS)]
    location = clients[0].get("/v1/namespaces/ns/tables/source0").json()["metadata-location"]

    def work(number: int) -> int:
        return _take_name(clients[number], kind, number, location).status_code

    statuses = at_once(WRITERS, work)

    winners = [status for status in statuses if status in (200, 204)]
    losers = [status for status in statuses if status == 409]
    assert len(winners) == 1, statuses
    assert len(winners) + len(losers) == WRITERS, statuses
    exists = [
        httpx.head(f"{servers[1]}/v1/namespaces/ns/{kind_}/wanted").status_code
        for kind_ in ("tables", "views")
    ]
    assert sorted(exists) == [204, 404]


def _take_name(client: httpx.Client, kind: str, number: int, location: str) -> httpx.Response:
    schema = {"type": "struct", "schema-id": 0, "fields": []}
    if kind == "rename":
        source = {"namespace": ["ns"], "name": f"source{number}"}
        body: dict[str, object] = {"source": source, "destination": {"namespace": ["ns"], "name": "wanted"}}
        return client.post("/v1/tables/rename", json=body)
    if kind == "register":
        body = {"name": "wanted", "metadata-location": location}
        return client.post("/v1/namespaces/ns/register", json=body)
    if kind == "view-and-table" and number % 2:
        version = {
            "version-id": 1,
            "timestamp-ms": 1,
            "schema-id": 0,
            "summary": {},
            "default-namespace": ["ns"],
            "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
        }
        body = {"name": "wanted", "schema": schema, "view-version": version, "properties": {}}
        return client.post("/v1/namespaces/ns/views", json=body)
    if kind == "stage":
        staged = client.post(
            "/v1/namespaces/ns/tables", json={"name": "wanted", "schema": schema, "stage-create": True}
        )
        if staged.status_code != 200:
            return staged
        metadata = staged.json()["metadata"]
        updates = [
            {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
            {"action": "add-schema", "schema": schema},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": metadata["location"]},
        ]
        body = {"requirements": [{"type": "assert-create"}], "updates": updates}
        return client.post("/v1/namespaces/ns/tables/wanted", json=body)
    return client.post("/v1/namespaces/ns/tables", json={"name": "wanted", "schema": schema})


def test_dropping_a_namespace_races_with_filling_it(servers: list[str]) -> None:
    clients = [httpx.Client(base_url=servers[number % len(servers)], timeout=60) for number in range(WRITERS)]
    for round_ in range(10):
        name = f"contested{round_}"
        clients[0].post("/v1/namespaces", json={"namespace": [name]})

        def work(number: int, name: str = name) -> tuple[bool, int]:
            if number % 2:
                return True, clients[number].delete(f"/v1/namespaces/{name}").status_code
            body = {"name": f"t{number}", "schema": {"type": "struct", "schema-id": 0, "fields": []}}
            return False, clients[number].post(f"/v1/namespaces/{name}/tables", json=body).status_code

        answered = at_once(WRITERS, work)

        dropped = [status for was_drop, status in answered if was_drop and status == 204]
        created = [status for was_drop, status in answered if not was_drop and status == 200]
        assert {status for _, status in answered} <= {200, 204, 404, 409}
        assert len(dropped) <= 1
        assert not (dropped and created), "a namespace was dropped with a table in it"


def test_two_requests_under_one_idempotency_key_have_one_effect(servers: list[str]) -> None:
    make_tables(servers[0], "t")
    clients = [httpx.Client(base_url=servers[number % len(servers)], timeout=60) for number in range(WRITERS)]
    for round_ in range(5):
        body = {
            "requirements": [],
            "updates": [{"action": "set-properties", "updates": {"round": str(round_)}}],
        }
        before = len(load(servers[0], "t")["metadata-log"])

        def work(number: int, body: object = body, round_: int = round_) -> httpx.Response:
            return clients[number].post(
                "/v1/namespaces/ns/tables/t", json=body, headers={"Idempotency-Key": f"round-{round_}"}
            )

        answers = at_once(WRITERS, work)

        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.json()["metadata-location"] for answer in answers}) == 1
        assert len(load(servers[0], "t")["metadata-log"]) == before + 1
