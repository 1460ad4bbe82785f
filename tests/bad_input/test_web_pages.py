"""What a web page in a browser on the same machine could send: nothing of it reaches the catalog."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from app.api.description import description
from tests.bad_input.attacks import GET, HEAD, POST, Attack, check_refused
from tests.bad_input.victim import Victim
from tests.bad_input.wire import chunked, request, send
from tests.builders.http_catalog import SCHEMA, http_catalog

NS = "/v1/namespaces"
BODY = {"namespace": ["made-by-a-page"]}
NOT_JSON = "The request has a body and …: send it as application/json"
FROM_ELSEWHERE = "Requests from web pages of another site are refused: …"
NOT_OUR_NAME = "Host … is not a name of this server; the setting allowed_hosts adds names to localhost"
PAGE = {"Origin": "https://evil.example"}

NOT_ANNOUNCED_AS_JSON = [
    Attack(f"typed {type_!r}", POST, NS, 415, NOT_JSON, body=BODY, headers={"Content-Type": type_})
    for type_ in (
        "text/plain",
        "text/plain;application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonx",
        "text/json",
        ";;=;",
        "",
    )
]

NO_TYPE = (
    b"POST /v1/namespaces HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 26\r\n\r\n"
    b'{"namespace": ["no-type"]}'
)

FROM_A_PAGE = [
    Attack("posted", POST, NS, 403, FROM_ELSEWHERE, body=BODY, headers=PAGE),
    Attack("without a body", POST, f"{NS}/a/tables/t/unregister", 403, FROM_ELSEWHERE, headers=PAGE),
    Attack("read", GET, NS, 403, FROM_ELSEWHERE, headers=PAGE),
    Attack("asked", HEAD, f"{NS}/a", 403, headers=PAGE),
    Attack("deleted", "DELETE", f"{NS}/empty", 403, FROM_ELSEWHERE, headers=PAGE),
    Attack("of no origin", POST, NS, 403, FROM_ELSEWHERE, body=BODY, headers={"Origin": "null"}),
    Attack("of an odd origin", POST, NS, 403, FROM_ELSEWHERE, body=BODY, headers={"Origin": "\udcff"}),
    Attack(
        "of another port",
        POST,
        NS,
        403,
        FROM_ELSEWHERE,
        body=BODY,
        headers={"Origin": "http://localhost:3000"},
    ),
    *(
        Attack(f"{site} {mode}", POST, NS, 403, FROM_ELSEWHERE, body=BODY, headers=headers)
        for site in ("cross-site", "same-site", "something-new")
        for mode in ("cors", "no-cors", "navigate")
        for headers in [{"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}]
    ),
    Attack(
        "read into an image",
        GET,
        NS,
        403,
        FROM_ELSEWHERE,
        headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    ),
    Attack("management", GET, "/management/v1/warehouses", 403, FROM_ELSEWHERE, headers=PAGE),
]

OF_ANOTHER_NAME = [
    Attack(f"{method} {name}", method, NS, 403, NOT_OUR_NAME, body=body, headers={"Host": name})
    for method, body in ((GET, None), (POST, BODY), ("DELETE", None))
    for name in (
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.example:8181",
        "notlocalhost",
        "192.168.0.7",
        "0.0.0.0",
        "[::2]",
        "localhost@evil.example",
        "localhost:80:80",
        "",
        "\udcff",
    )
]


@pytest.mark.parametrize("attack", [*NOT_ANNOUNCED_AS_JSON, *FROM_A_PAGE, *OF_ANOTHER_NAME], ids=str)
def test_page_is_refused_and_changes_nothing(victim: Victim, attack: Attack) -> None:
    check_refused(attack, victim)


def test_body_without_a_type_is_refused(victim: Victim) -> None:
    answer = send(victim.port, NO_TYPE, POST)

    assert (answer.status, answer.json()["error"]["type"]) == (415, "UnsupportedMediaTypeException")
    victim.check_unchanged()


def test_body_in_chunks_is_refused_too(victim: Victim) -> None:
    headers = {"Transfer-Encoding": "chunked", "Content-Type": "text/plain"}
    check_refused(
        Attack("", POST, NS, 415, NOT_JSON, body=chunked(json.dumps(BODY).encode()), headers=headers), victim
    )


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "localhost:8181"},
        {"Host": "LOCALHOST."},
        {"Host": "tower.localhost"},
        {"Host": "127.1.2.3:80"},
        {"Host": "[::1]:8181"},
        {"Host": "localhost:1", "Origin": "http://localhost:1"},
        {"Host": "localhost", "Origin": "http://localhost:80"},
        {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
        {"Sec-Fetch-Mode": "cors"},
    ],
    ids=str,
)
def test_what_is_no_page_of_another_site_is_served(victim: Victim, headers: dict[str, str]) -> None:
    read = send(victim.port, request(GET, NS, headers, None))

    assert read.status == 200


def test_request_without_a_body_needs_no_type(victim: Victim) -> None:
    path = f"{NS}/a/tables/t/validate"
    empty = send(victim.port, request(POST, path, {"Content-Length": "0", "Content-Type": "text/plain"}, b""))
    in_chunks = send(
        victim.port,
        request(POST, path, {"Transfer-Encoding": "chunked", "Content-Type": "text/plain"}, chunked(b"")),
    )

    assert {answer.json()["error"]["message"] for answer in (empty, in_chunks)} == {
        "Invalid body: it is empty, a JSON object is expected"
    }


def test_chain_of_plain_posts_by_which_a_page_deleted_a_file_of_its_reader(tmp_path: Path) -> None:
    """Six requests that need no permission of the browser, and whose answers the page need not read."""
    precious = tmp_path / "home" / "precious.txt"
    precious.parent.mkdir()
    precious.write_text("years of work")
    home = f"file://{precious.parent}"
    snapshot: dict[str, Any] = {
        "snapshot-id": 1,
        "sequence-number": 1,
        "timestamp-ms": 1_700_000_000_000,
        "manifest-list": f"{home}/list.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    statistics = {
        "snapshot-id": 1,
        "statistics-path": f"file://{precious}",
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }
    table = "/v1/hers/namespaces/n/tables/t"
    chain: list[tuple[str, dict[str, Any]]] = [
        ("/management/v1/warehouses", {"name": "hers", "root-location": home}),
        ("/v1/hers/namespaces", {"namespace": ["n"]}),
        ("/v1/hers/namespaces/n/tables", {"name": "t", "schema": SCHEMA}),
        (table, {"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": snapshot}]}),
        (
            table,
            {
                "requirements": [],
                "updates": [{"action": "set-statistics", "snapshot-id": 1, "statistics": statistics}],
            },
        ),
        (f"{table}/expire", {"snapshot-ids": [1]}),
    ]
    with http_catalog(tmp_path, expired_file_grace_seconds=0, file_deletion_interval_seconds=0.05) as api:
        port = api.base_url.port
        assert port is not None
        plain = {"Content-Type": "text/plain"}
        answers = [send(port, request(POST, path, plain, json.dumps(body).encode())) for path, body in chain]
        warehouses = api.get("/management/v1/warehouses").json()["warehouses"]

    assert [answer.status for answer in answers] == [415] * 6
    assert [warehouse["name"] for warehouse in warehouses] == ["default"]
    assert precious.read_text() == "years of work"


def described() -> list[tuple[str, str]]:
    """Return each operation of openapi.yaml, with names in place of the pieces of its path."""
    filled = {"namespace": "a", "table": "v2", "view": "v", "ref": "main", "prefix": "default"}
    return [
        (method.upper(), re.sub(r"{([^}]+)}", lambda piece: filled.get(piece[1], "x"), path))
        for path, operations in description()["paths"].items()
        for method in operations
        if method in {"get", "head", "post", "put", "patch", "delete"}
    ]


@pytest.mark.parametrize(("method", "path"), described())
def test_no_operation_is_open_to_a_page(victim: Victim, method: str, path: str) -> None:
    """Those that read nothing and change nothing too: what a route answers is not asked first."""
    body = b"{}" if method in {POST, "PUT", "PATCH"} else None
    sent: list[tuple[dict[str, str], int]] = [
        (PAGE, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ({"Host": "evil.example"}, 403),
    ]
    if body is not None:
        sent += [({"Content-Type": type_}, 415) for type_ in ("text/plain", "application/x-ndjson")]

    statuses = [send(victim.port, request(method, path, headers, body), method).status for headers, _ in sent]

    assert statuses == [status for _, status in sent]
    victim.check_unchanged()
