"""A random sequence of API calls agrees with dictionaries: what exists, what it holds, and which call is refused."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from app.testing import icetower_catalog
from tests.builders.databases import migrated_database_of

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}],
}
# Few names, so that calls meet each other; odd ones, so that each survives the road through the path.
NAMESPACES = st.sampled_from(
    [("a",), ("a", "b"), ("a", "sl/ash"), ("dot.ted",), ("dot", "ted"), ("pl+us", "per%cent", "🧊"), ("A",)]
)
NAMES = st.sampled_from(["t", "T", "ta.ble/ä", "ta.ble/a\u0308", "100% 🧊+"])
PROPERTIES = st.dictionaries(
    st.sampled_from(["x", "y", "ключ"]), st.sampled_from(["1", "2", "värde", ""]), max_size=3
)
_warehouse_numbers = itertools.count()

Namespace = tuple[str, ...]
Identifier = tuple[Namespace, str]


@dataclass
class Thing:
    """A table or view as the model knows it."""

    kind: str
    uuid: str
    properties: dict[str, str]
    location: str
    """Of its metadata file."""
    ids: set[str] = field(default_factory=set)


class CatalogModel(RuleBasedStateMachine):
    """The API on one side, two dictionaries on the other."""

    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.http = httpx.Client(base_url=self.url, timeout=60)
        name = f"wh-{next(_warehouse_numbers)}"
        root = self.http.get("/management/v1/warehouses/default").json()["root-location"]
        body = {"name": name, "root-location": f"{root}/{name}"}
        assert self.http.post("/management/v1/warehouses", json=body).status_code == 200
        self.prefix = f"/v1/{name}"
        self.namespaces: dict[Namespace, dict[str, str]] = {}
        self.things: dict[Identifier, Thing] = {}
        self.dropped: list[tuple[str, Thing]] = []

    def teardown(self) -> None:
        self.http.close()

    def path(self, namespace: Namespace, kind: str = "", name: str = "") -> str:
        joined = "%1F".join(_quoted(level) for level in namespace)
        return (
            f"{self.prefix}/namespaces/{joined}"
            + (f"/{kind}" if kind else "")
            + (f"/{_quoted(name)}" if name else "")
        )

    # ------------------------------------------------------------------------------------------ namespaces

    @rule(namespace=NAMESPACES, properties=PROPERTIES)
    def create_namespace(self, namespace: Namespace, properties: dict[str, str]) -> None:
        body = {"namespace": namespace, "properties": properties}
        answer = self.http.post(f"{self.prefix}/namespaces", json=body)

        if namespace in self.namespaces:
            _refused(answer, 409, "AlreadyExistsException")
            return
        assert answer.status_code == 200, answer.text
        for depth in range(1, len(namespace)):
            self.namespaces.setdefault(namespace[:depth], {})
        self.namespaces[namespace] = properties

    @rule(namespace=NAMESPACES)
    def drop_namespace(self, namespace: Namespace) -> None:
        answer = self.http.delete(self.path(namespace))

        if namespace not in self.namespaces:
            _refused(answer, 404, "NoSuchNamespaceException")
        elif any(key[0] == namespace for key in self.things) or self.children(namespace):
            _refused(answer, 409, "NamespaceNotEmptyException")
        else:
            assert answer.status_code == 204
            del self.namespaces[namespace]

    @rule(
        namespace=NAMESPACES,
        updates=PROPERTIES,
        removals=st.lists(st.sampled_from(["x", "y", "z"]), unique=True),
    )
    def update_namespace(self, namespace: Namespace, updates: dict[str, str], removals: list[str]) -> None:
        body = {"updates": updates, "removals": removals}
        answer = self.http.post(f"{self.path(namespace)}/properties", json=body)

        if set(updates) & set(removals):
            assert answer.status_code in (404, 422)
        elif namespace not in self.namespaces:
            _refused(answer, 404, "NoSuchNamespaceException")
        else:
            properties = self.namespaces[namespace]
            told = answer.json()
            assert set(told["updated"]) == set(updates)
            assert set(told["removed"]) == set(removals) & properties.keys()
            assert set(told["missing"]) == set(removals) - properties.keys()
            properties |= updates
            for key in removals:
                properties.pop(key, None)

    # ------------------------------------------------------------------------------------- tables and views

    @rule(namespace=NAMESPACES, name=NAMES, properties=PROPERTIES, kind=st.sampled_from(["tables", "views"]))
    def create(self, namespace: Namespace, name: str, properties: dict[str, str], kind: str) -> None:
        body: dict[str, Any] = {"name": name, "schema": SCHEMA, "properties": properties}
        if kind == "views":
            body["view-version"] = _version("SELECT 1")
        answer = self.http.post(self.path(namespace, kind), json=body)

        if namespace not in self.namespaces:
            _refused(answer, 404, "NoSuchNamespaceException")
        elif (namespace, name) in self.things:
            _refused(answer, 409, "AlreadyExistsException")
        else:
            assert answer.status_code == 200, answer.text
            self.remember((namespace, name), kind, answer.json())
            assert properties.items() <= self.things[namespace, name].properties.items()

    @rule(namespace=NAMESPACES, name=NAMES)
    def stage_changes_nothing(self, namespace: Namespace, name: str) -> None:
        body = {"name": name, "schema": SCHEMA, "stage-create": True}
        answer = self.http.post(self.path(namespace, "tables"), json=body)

        if namespace in self.namespaces and (namespace, name) not in self.things:
            assert answer.status_code == 200
            assert "metadata-location" not in answer.json()
        else:
            assert answer.status_code in (404, 409)

    @rule(namespace=NAMESPACES, name=NAMES, updates=PROPERTIES, kind=st.sampled_from(["tables", "views"]))
    def set_properties(self, namespace: Namespace, name: str, updates: dict[str, str], kind: str) -> None:
        thing = self.things.get((namespace, name))
        uuid = thing.uuid if thing else "00000000-0000-0000-0000-000000000000"
        requirement = {"type": f"assert-{kind[:-1]}-uuid", "uuid": uuid}
        body = {"requirements": [requirement], "updates": [{"action": "set-properties", "updates": updates}]}
        answer = self.http.post(self.path(namespace, kind, name), json=body)

        if thing is None or thing.kind != kind:
            _refused(answer, 404, _MISSING[kind])
            return
        assert answer.status_code == 200, answer.text
        thing.properties |= updates
        assert (answer.json()["metadata-location"] != thing.location) is bool(updates)
        thing.location = answer.json()["metadata-location"]

    @rule(namespace=NAMESPACES, name=NAMES)
    def commit_to_another_table_of_that_name(self, namespace: Namespace, name: str) -> None:
        thing = self.things.get((namespace, name))
        requirement = {"type": "assert-table-uuid", "uuid": "ffffffff-ffff-ffff-ffff-ffffffffffff"}
        body = {"requirements": [requirement], "updates": []}
        answer = self.http.post(self.path(namespace, "tables", name), json=body)

        if thing is None or thing.kind != "tables":
            _refused(answer, 404, "NoSuchTableException")
        else:
            _refused(answer, 409, "CommitFailedException")

    @rule(namespace=NAMESPACES, name=NAMES, kind=st.sampled_from(["tables", "views"]))
    def drop(self, namespace: Namespace, name: str, kind: str) -> None:
        answer = self.http.delete(self.path(namespace, kind, name))

        thing = self.things.get((namespace, name))
        if thing is None or thing.kind != kind:
            _refused(answer, 404, _MISSING[kind])
        else:
            assert answer.status_code == 204
            self.dropped.append((kind, self.things.pop((namespace, name))))

    @rule(
        source_namespace=NAMESPACES,
        source=NAMES,
        new_namespace=NAMESPACES,
        new_name=NAMES,
        kind=st.sampled_from(["tables", "views"]),
    )
    def rename(
        self, source_namespace: Namespace, source: str, new_namespace: Namespace, new_name: str, kind: str
    ) -> None:
        old, new = (source_namespace, source), (new_namespace, new_name)
        body = {
            "source": {"namespace": source_namespace, "name": source},
            "destination": {"namespace": new_namespace, "name": new_name},
        }
        answer = self.http.post(f"{self.prefix}/{kind}/rename", json=body)

        thing = self.things.get(old)
        if thing is None or thing.kind != kind:
            assert answer.status_code == 404, answer.text
        elif new_namespace not in self.namespaces:
            _refused(answer, 404, "NoSuchNamespaceException")
        elif new in self.things and new != old:
            _refused(answer, 409, "AlreadyExistsException")
        else:
            assert answer.status_code == 204, answer.text
            self.things[new] = self.things.pop(old)

    @rule(namespace=NAMESPACES, name=NAMES, pick=st.integers(0, 100))
    def register_what_was_dropped(self, namespace: Namespace, name: str, pick: int) -> None:
        if not self.dropped:
            return
        kind, thing = self.dropped[pick % len(self.dropped)]
        route = "register" if kind == "tables" else "register-view"
        body = {"name": name, "metadata-location": thing.location}
        answer = self.http.post(self.path(namespace, route), json=body)

        if namespace not in self.namespaces:
            _refused(answer, 404, "NoSuchNamespaceException")
        elif (namespace, name) in self.things:
            _refused(answer, 409, "AlreadyExistsException")
        else:
            assert answer.status_code == 200, answer.text
            self.remember((namespace, name), kind, answer.json())
            assert self.things[namespace, name].uuid == thing.uuid

    @rule(namespace=NAMESPACES, name=NAMES)
    def unregister(self, namespace: Namespace, name: str) -> None:
        answer = self.http.post(f"{self.path(namespace, 'tables', name)}/unregister")

        thing = self.things.get((namespace, name))
        if thing is None or thing.kind != "tables":
            _refused(answer, 404, "NoSuchTableException")
        else:
            assert answer.json()["metadata-location"] == thing.location
            self.dropped.append(("tables", self.things.pop((namespace, name))))

    @rule(
        pairs=st.lists(st.tuples(NAMESPACES, NAMES), min_size=1, max_size=3),
        updates=PROPERTIES.filter(bool),
        fails=st.booleans(),
    )
    def transaction(self, pairs: list[Identifier], updates: dict[str, str], fails: bool) -> None:
        changes: list[dict[str, Any]] = [
            {
                "identifier": {"namespace": namespace, "name": name},
                "requirements": [],
                "updates": [{"action": "set-properties", "updates": updates}],
            }
            for namespace, name in pairs
        ]
        if fails:
            changes[-1]["requirements"] = [{"type": "assert-current-schema-id", "current-schema-id": 9}]
        answer = self.http.post(f"{self.prefix}/transactions/commit", json={"table-changes": changes})

        if any(pair not in self.things or self.things[pair].kind != "tables" for pair in pairs):
            assert answer.status_code in ((404, 409) if fails else (404,)), answer.text
        elif fails:
            _refused(answer, 409, "CommitFailedException")
        else:
            assert answer.status_code == 204, answer.text
            for pair in set(pairs):
                self.things[pair].properties |= updates
                loaded = self.http.get(self.path(pair[0], "tables", pair[1])).json()
                self.things[pair].location = loaded["metadata-location"]

    # --------------------------------------------------------------------------------------- what must agree

    @invariant()
    def listings_agree(self) -> None:
        outermost = {tuple(item) for item in self.http.get(f"{self.prefix}/namespaces").json()["namespaces"]}
        assert outermost == self.children(())
        for namespace, properties in self.namespaces.items():
            found = self.http.get(self.path(namespace)).json()["properties"]
            # Where new tables go; no property of these is called so.
            safe = [re.sub(r"[^A-Za-z0-9_-]", "_", level) for level in namespace]
            assert found.pop("location").endswith("/".join(["", *safe]))
            assert found == properties
            children = self.http.get(
                f"{self.prefix}/namespaces", params={"parent": "\x1f".join(namespace)}
            ).json()
            assert {tuple(item) for item in children["namespaces"]} == self.children(namespace)
            for kind in ("tables", "views"):
                listed = self.http.get(self.path(namespace, kind)).json()["identifiers"]
                found = {(tuple(item["namespace"]), item["name"]) for item in listed}
                assert found == {
                    key for key, thing in self.things.items() if key[0] == namespace and thing.kind == kind
                }

    @invariant()
    def things_agree(self) -> None:
        for (namespace, name), thing in self.things.items():
            loaded = self.http.get(self.path(namespace, thing.kind, name)).json()
            assert loaded["metadata-location"] == thing.location
            assert loaded["metadata"]["properties"] == thing.properties
            assert _uuid(loaded) == thing.uuid
            for kind in ("tables", "views"):
                status = self.http.head(self.path(namespace, kind, name)).status_code
                assert status == (204 if kind == thing.kind else 404)

    def children(self, namespace: Namespace) -> set[Namespace]:
        depth = len(namespace)
        return {key for key in self.namespaces if len(key) == depth + 1 and key[:depth] == namespace}

    def remember(self, identifier: Identifier, kind: str, loaded: dict[str, Any]) -> None:
        properties = loaded["metadata"]["properties"]
        self.things[identifier] = Thing(kind, _uuid(loaded), properties, loaded["metadata-location"])


_MISSING = {"tables": "NoSuchTableException", "views": "NoSuchViewException"}


def _uuid(loaded: dict[str, Any]) -> str:
    metadata = loaded["metadata"]
    return str(metadata.get("table-uuid") or metadata["view-uuid"])


def _quoted(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def _version(sql: str) -> dict[str, Any]:
    return {
        "version-id": 1,
        "timestamp-ms": 1_700_000_000_000,
        "schema-id": 0,
        "summary": {},
        "default-namespace": [],
        "representations": [{"type": "sql", "sql": sql, "dialect": "spark"}],
    }


def _refused(answer: httpx.Response, status: int, kind: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["type"] == kind


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Address of a server on either database."""
    database_url = None
    if request.param == "postgres":
        postgres = request.getfixturevalue("postgres_server")
        database_url = postgres.url(migrated_database_of(postgres))
    with icetower_catalog(database_url=database_url) as started:
        yield started


@pytest.mark.slow
def test_any_sequence_of_calls_agrees_with_dictionaries(url: str) -> None:
    machine = type("MachineOfThisServer", (CatalogModel,), {"url": url})
    profile = settings.get_current_profile_name()
    examples = 500 if profile == "nightly" else 12

    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=30, deadline=None)
    )
