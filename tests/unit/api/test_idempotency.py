"""Requests that are sent twice under one Idempotency-Key are done once and answered alike."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.responses import Response

from app.api.dependencies import Parts, Visit
from app.api.idempotency import claim_of, run_once
from app.api.responses.answers import no_content
from app.api.scope_keys import HEADERS, PREFIX, PRINCIPAL, REQUEST_ID
from app.catalog.context.catalog import Catalog
from app.catalog.warehouses import WarehouseMemo
from app.database.schema.migrations import downgrade
from app.errors import (
    CommitFailed,
    FilesBeingDeleted,
    FilesUnavailable,
    IdempotencyKeyTaken,
    PointerMoved,
    RequirementFailed,
    Unavailable,
)
from app.main import build_server, create_app, open_database, prepare
from app.recoveries import OrphansWait
from tests.builders.http_catalog import (
    SCHEMA,
    VIEW_VERSION,
    error_of,
    http_catalog,
    make_namespace,
    make_table,
    make_view,
    set_properties,
    settings_in,
)

_NUMBERS = itertools.count(1)
Send = Callable[[], httpx.Response]


@pytest.fixture
def key() -> dict[str, str]:
    return {"idempotency-key": f"key-{next(_NUMBERS)}"}


def mutation(api: httpx.Client, ns: str, name: str, key: dict[str, str]) -> Send:
    """Return a request that succeeds once and cannot succeed twice, or that shows when it is done twice."""
    table = make_table(api, ns, "t")
    view = make_view(api, ns, "v")
    at = f"/v1/namespaces/{ns}"
    post: dict[str, tuple[str, Any]] = {
        "create namespace": ("/v1/namespaces", {"namespace": [ns, "new"], "properties": {"a": "b"}}),
        "update properties": (f"{at}/properties", {"updates": {"a": "b"}, "removals": ["c"]}),
        "create table": (f"{at}/tables", {"name": "new", "schema": SCHEMA}),
        "register table": (
            f"{at}/register",
            {"name": "new", "metadata-location": table["metadata-location"]},
        ),
        "unregister table": (f"{at}/tables/t/unregister", None),
        "commit": (f"{at}/tables/t", set_properties(a="b")),
        "transaction": (
            "/v1/transactions/commit",
            {"table-changes": [{"identifier": {"namespace": [ns], "name": "t"}, **set_properties(a="b")}]},
        ),
        "rename table": (
            "/v1/tables/rename",
            {"source": {"namespace": [ns], "name": "t"}, "destination": {"namespace": [ns], "name": "u"}},
        ),
        "create view": (
            f"{at}/views",
            {"name": "new", "schema": SCHEMA, "view-version": VIEW_VERSION, "properties": {}},
        ),
        "register view": (
            f"{at}/register-view",
            {"name": "new", "metadata-location": view["metadata-location"]},
        ),
        "replace view": (f"{at}/views/v", set_properties(a="b")),
        "rename view": (
            "/v1/views/rename",
            {"source": {"namespace": [ns], "name": "v"}, "destination": {"namespace": [ns], "name": "w"}},
        ),
    }
    delete = {
        "drop namespace": f"{at}%1Fempty",
        "drop table": f"{at}/tables/t",
        "purge table": f"{at}/tables/t?purgeRequested=true",
        "drop view": f"{at}/views/v",
    }
    if name == "drop namespace":
        make_namespace(api, ns, "empty")
    if name in delete:
        return lambda: api.delete(delete[name], headers=key)
    url, body = post[name]
    return lambda: api.post(url, json=body, headers=key)


MUTATIONS = [
    "create namespace",
    "update properties",
    "drop namespace",
    "create table",
    "register table",
    "unregister table",
    "commit",
    "transaction",
    "rename table",
    "drop table",
    "purge table",
    "create view",
    "register view",
    "replace view",
    "rename view",
    "drop view",
]


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutation_sent_again_is_answered_again(
    api: httpx.Client, ns: str, key: dict[str, str], name: str
) -> None:
    send = mutation(api, ns, name, key)

    first, second = send(), send()

    assert first.status_code in (200, 204), first.text
    assert (second.status_code, second.content) == (first.status_code, first.content)
    assert "idempotent-replayed" not in first.headers
    assert second.headers["idempotent-replayed"] == "true"


def test_commit_sent_again_is_one_commit(api: httpx.Client, ns: str, key: dict[str, str]) -> None:
    make_table(api, ns, "t")
    url = f"/v1/namespaces/{ns}/tables/t"

    for _ in range(3):
        api.post(url, json=set_properties(a="b"), headers=key)

    assert len(api.get(url).json()["metadata"]["metadata-log"]) == 1


def test_answer_to_a_commit_sent_again_may_be_newer(api: httpx.Client, ns: str, key: dict[str, str]) -> None:
    make_table(api, ns, "t")
    url = f"/v1/namespaces/{ns}/tables/t"
    api.post(url, json=set_properties(a="b"), headers=key)
    newer = api.post(url, json=set_properties(a="c"))

    again = api.post(url, json=set_properties(a="b"), headers=key)

    assert again.json() == newer.json()


def test_create_sent_again_after_a_drop_tells_what_it_made(
    api: httpx.Client, ns: str, key: dict[str, str]
) -> None:
    body = {"name": "t", "schema": SCHEMA}
    created = api.post(f"/v1/namespaces/{ns}/tables", json=body, headers=key)
    api.delete(f"/v1/namespaces/{ns}/tables/t")

    again = api.post(f"/v1/namespaces/{ns}/tables", json=body, headers=key)

    assert again.json() == created.json()
    assert api.head(f"/v1/namespaces/{ns}/tables/t").status_code == 404


@pytest.mark.parametrize("name", ["create table", "register table", "commit", "create view", "replace view"])
def test_answer_to_a_request_sent_again_is_never_about_another_of_the_same_name(
    api: httpx.Client, ns: str, key: dict[str, str], name: str
) -> None:
    """The name was dropped and made anew in between."""
    send = mutation(api, ns, name, key)
    first = send()
    kind, what = ("views", VIEW_VERSION) if "view" in name else ("tables", None)
    new = "v" if name == "replace view" else "t" if name == "commit" else "new"
    url = f"/v1/namespaces/{ns}/{kind}"
    assert api.delete(f"{url}/{new}").status_code == 204
    body = {"name": new, "schema": SCHEMA, **({"view-version": what, "properties": {}} if what else {})}
    other = api.post(url, json=body)

    again = send()

    assert other.status_code == 200, other.text
    assert again.json()["metadata-location"] == first.json()["metadata-location"]
    uuid = "view-uuid" if what else "table-uuid"
    assert again.json()["metadata"][uuid] != other.json()["metadata"][uuid]


@pytest.mark.parametrize("name", ["create table", "commit"])
def test_answer_is_not_about_the_table_that_was_registered_over_it(
    api: httpx.Client, ns: str, key: dict[str, str], name: str
) -> None:
    send = mutation(api, ns, name, key)
    first = send()
    own = "t" if name == "commit" else "new"
    make_table(api, ns, "other")
    other = api.post(f"/v1/namespaces/{ns}/tables/other/unregister").json()
    body = {"name": own, "metadata-location": other["metadata-location"], "overwrite": True}
    assert api.post(f"/v1/namespaces/{ns}/register", json=body).status_code == 200

    again = send()

    assert again.json()["metadata-location"] == first.json()["metadata-location"]
    assert again.json()["metadata"]["table-uuid"] == first.json()["metadata"]["table-uuid"]


def test_unregister_sent_again_hands_over_the_table_that_it_let_go(
    api: httpx.Client, ns: str, key: dict[str, str]
) -> None:
    make_table(api, ns, "t")
    url = f"/v1/namespaces/{ns}/tables/t"
    first = api.post(f"{url}/unregister", headers=key)
    location = first.json()["metadata-location"]
    api.post(f"/v1/namespaces/{ns}/register", json={"name": "t", "metadata-location": location})
    api.post(url, json=set_properties(a="b"))

    again = api.post(f"{url}/unregister", headers=key)

    assert again.json() == first.json()
    assert api.head(url).status_code == 204


@pytest.mark.parametrize("name", ["register table", "unregister table", "register view"])
def test_answer_is_never_about_another_table_whose_file_was_put_there(
    api: httpx.Client, ns: str, key: dict[str, str], name: str
) -> None:
    """Writers of other catalogs call their files alike, and write them anew."""
    is_view = "view" in name
    make, kind, uuid = (make_view, "views", "view-uuid") if is_view else (make_table, "tables", "table-uuid")
    url = f"/v1/namespaces/{ns}/{'register-view' if is_view else 'register'}"
    file = Path(urlsplit(make(api, ns, "one")["metadata-location"]).path)
    other = Path(urlsplit(make(api, ns, "two")["metadata-location"]).path)
    body = {"name": "new", "metadata-location": f"file://{file}"}

    def send() -> httpx.Response:
        if name == "unregister table":
            return api.post(f"/v1/namespaces/{ns}/tables/one/unregister", headers=key)
        return api.post(url, json=body, headers=key)

    first = send()
    assert first.status_code == 200, first.text
    if name != "unregister table":
        assert send().json()["metadata"][uuid] == first.json()["metadata"][uuid]
    api.delete(f"/v1/namespaces/{ns}/{kind}/two")
    file.write_bytes(other.read_bytes())

    again = send()
    if again.status_code == 200:
        assert again.json()["metadata"][uuid] == first.json()["metadata"][uuid]
    registered = api.post(url, json=body | {"overwrite": True})
    assert registered.status_code == 200, registered.text
    assert registered.json()["metadata"][uuid] != first.json()["metadata"][uuid]
    again = send()

    if again.status_code == 200:
        assert again.json()["metadata"][uuid] == first.json()["metadata"][uuid]
    else:
        assert (again.status_code, again.json()["error"]["type"]) == (404, "NotFoundException")
        assert first.json()["metadata"][uuid] in again.json()["error"]["message"]


@pytest.mark.parametrize(("make", "kind"), [(make_table, "table"), (make_view, "view")])
def test_commit_sent_again_whose_table_and_file_have_gone_is_not_refused(
    api: httpx.Client, ns: str, key: dict[str, str], make: Callable[..., object], kind: str
) -> None:
    """On a refusal clients delete manifests, which the table has when it comes back."""
    make(api, ns, "t")
    url = f"/v1/namespaces/{ns}/{kind}s/t"
    landed = api.post(url, json=set_properties(a="b"), headers=key)
    api.post(url, json=set_properties(a="c"))
    assert api.delete(url).status_code == 204
    Path(urlsplit(landed.json()["metadata-location"]).path).unlink()

    again = api.post(url, json=set_properties(a="b"), headers=key)

    assert (again.status_code, again.json()["error"]["type"]) == (500, "CommitStateUnknownException")
    assert f"the {kind} has left this name since" in again.json()["error"]["message"]


def test_refusal_is_repeated_although_it_would_succeed_now(
    api: httpx.Client, ns: str, key: dict[str, str]
) -> None:
    body = {"name": "t", "schema": SCHEMA}
    url = f"/v1/namespaces/{ns}%1Flater/tables"
    refused = api.post(url, json=body, headers=key)
    make_namespace(api, ns, "later")

    again = api.post(url, json=body, headers=key)

    assert error_of(again) == error_of(refused)
    assert again.status_code == 404
    assert again.headers["idempotent-replayed"] == "true"


def test_refusal_for_a_file_that_is_not_there_is_not_kept(
    api: httpx.Client, ns: str, key: dict[str, str]
) -> None:
    location = make_table(api, ns, "t")["metadata-location"]
    file = Path(location.removeprefix("file://"))
    away = file.rename(file.with_name("away"))
    body = {"name": "u", "metadata-location": location}
    refused = api.post(f"/v1/namespaces/{ns}/register", json=body, headers=key)
    away.rename(file)

    again = api.post(f"/v1/namespaces/{ns}/register", json=body, headers=key)

    assert error_of(refused)[:2] == (404, "NotFoundException")
    assert (again.status_code, "idempotent-replayed" in again.headers) == (200, False)


def test_refusal_of_a_commit_is_kept_whatever_it_was_for(
    api: httpx.Client, ns: str, key: dict[str, str]
) -> None:
    """Its client has deleted by then what it had written for it."""
    file = Path(make_table(api, ns, "t")["metadata-location"].removeprefix("file://"))
    change = {"identifier": {"namespace": [ns], "name": "t"}, **set_properties(a="b")}
    sent: list[tuple[str, Any, str]] = [
        (f"/v1/namespaces/{ns}/tables/t", set_properties(a="b"), "alone"),
        ("/v1/transactions/commit", {"table-changes": [change]}, "together"),
    ]

    def send() -> list[httpx.Response]:
        return [
            api.post(url, json=body, headers={"idempotency-key": f"{key['idempotency-key']} {name}"})
            for url, body, name in sent
        ]

    away = file.rename(file.with_name("away"))
    refused = send()
    away.rename(file)

    assert [error_of(each)[0] for each in refused] == [404, 404]
    assert [error_of(each) for each in send()] == [error_of(each) for each in refused]


def test_key_of_another_request_is_refused(api: httpx.Client, ns: str, key: dict[str, str]) -> None:
    make_table(api, ns, "t")
    url = f"/v1/namespaces/{ns}/tables/t"
    api.post(url, json=set_properties(a="b"), headers=key)

    other_body = api.post(url, json=set_properties(a="c"), headers=key)
    other_method = api.delete(url, headers=key)
    other_path = api.post(f"/v1/default/namespaces/{ns}/tables/t", json=set_properties(a="b"), headers=key)

    for response in (other_body, other_method, other_path):
        assert error_of(response)[:2] == (422, "UnprocessableEntityException")
    assert api.get(url).json()["metadata"]["properties"]["a"] == "b"


@pytest.mark.parametrize("bad", ["", "x" * 256, "søster", "a\tb"])
def test_key_that_is_not_printable_text_is_refused(api: httpx.Client, ns: str, bad: str) -> None:
    response = api.delete(f"/v1/namespaces/{ns}", headers={b"idempotency-key": bad.encode()})

    assert error_of(response)[0] == 400
    assert api.head(f"/v1/namespaces/{ns}").status_code == 204


@pytest.mark.parametrize("good", ["x", "not a uuid", "x" * 255, "!~"])
def test_any_printable_text_is_a_key(api: httpx.Client, ns: str, good: str) -> None:
    assert api.delete(f"/v1/namespaces/{ns}", headers={"idempotency-key": f"{good}"}).status_code in (
        204,
        422,
    )


def test_server_error_is_not_remembered(tmp_path: Path, key: dict[str, str]) -> None:
    failures = iter([FilesUnavailable("disk full"), ZeroDivisionError()])

    def fail_twice(step: str) -> None:
        if step == "before_write" and (error := next(failures, None)):
            raise error

    with http_catalog(tmp_path) as api:
        make_namespace(api, "a")
    with http_catalog(tmp_path, step=fail_twice) as api:
        statuses = [
            api.post("/v1/namespaces/a/tables", json={"name": "t", "schema": SCHEMA}, headers=key).status_code
            for _ in range(4)
        ]

    assert statuses == [503, 500, 200, 200]


def test_equal_requests_at_the_same_time_are_done_once(tmp_path: Path, key: dict[str, str]) -> None:
    both_are_in = threading.Barrier(2, timeout=20)

    def meet(step: str) -> None:
        # Both have found nothing under the key by the time they write.
        if step == "after_write":
            both_are_in.wait()

    with http_catalog(tmp_path) as api:
        make_namespace(api, "a")
        make_table(api, "a", "t")
    answers: list[httpx.Response] = []
    with http_catalog(tmp_path, step=meet) as one, http_catalog(tmp_path, step=meet) as two:

        def send(to: httpx.Client) -> None:
            answers.append(to.post("/v1/namespaces/a/tables/t", json=set_properties(a="b"), headers=key))

        threads = [threading.Thread(target=send, args=(to,)) for to in (one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        metadata = one.get("/v1/namespaces/a/tables/t").json()["metadata"]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    assert sorted("idempotent-replayed" in answer.headers for answer in answers) == [False, True]
    assert len(metadata["metadata-log"]) == 1


@pytest.fixture
def visit(tmp_path: Path, key: dict[str, str]) -> Iterator[Visit]:
    """A request under a key, as a route sees it."""
    settings = settings_in(tmp_path)
    app = create_app(settings)
    parts: Parts = app.state.parts
    with closing(open_database(settings)) as database:
        server = build_server(settings, database)
        prepare(settings, database, server)
        app.state.parts = replace(parts, server=server, warehouses=WarehouseMemo(server))
        yield Visit(
            {
                "app": app,
                "method": "POST",
                "raw_path": b"/v1/namespaces",
                "query_string": b"",
                HEADERS: {name.encode(): value.encode() for name, value in key.items()},
                PREFIX: None,
                PRINCIPAL: "tester",
                REQUEST_ID: "test",
            },
            b"{}",
        )


def done(_result: str = "") -> Response:
    return no_content()


@pytest.mark.parametrize("refusal", [RequirementFailed("table already exists"), OrphansWait("a.t")])
def test_refusal_that_an_equal_request_caused_is_answered_like_that_request(
    visit: Visit, refusal: CommitFailed
) -> None:
    claim = claim_of(visit)
    assert claim is not None

    def lose(_catalog: Catalog) -> Response:
        visit.catalog.server.idempotency_keys.record(claim, 200, "")
        raise refusal

    assert run_once(visit, lose, done).status_code == 204


def test_refusal_stands_although_it_could_not_be_remembered(visit: Visit, tmp_path: Path) -> None:
    def refuse_without_tables(_catalog: Catalog) -> Response:
        with closing(open_database(settings_in(tmp_path))) as database:
            downgrade(database, "base")
        raise RequirementFailed("table already exists")

    with pytest.raises(RequirementFailed):
        run_once(visit, refuse_without_tables, done)


@pytest.mark.parametrize("is_commit", [False, True])
@pytest.mark.parametrize(
    "refusal", [FilesBeingDeleted("s3://lake/t", "purge", "a.t"), PointerMoved("a.t", 20), OrphansWait("a.t")]
)
def test_refusal_that_passes_by_itself_is_kept_for_commits_only(
    visit: Visit, refusal: CommitFailed, is_commit: bool
) -> None:
    def refuse(_catalog: Catalog) -> Response:
        raise refusal

    with pytest.raises(type(refusal)):
        run_once(visit, refuse, done, is_commit=is_commit)

    assert run_once(visit, lambda _: done(), done, is_commit=is_commit).status_code == (
        409 if is_commit else 204
    )


def test_winner_whose_time_ran_out_is_nobody_to_answer_like(visit: Visit) -> None:
    def lose(_catalog: Catalog) -> Response:
        raise IdempotencyKeyTaken("taken")

    with pytest.raises(Unavailable):
        run_once(visit, lose, done)
