"""A real catalog for the commands to talk to, and a way to run them in this process."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.cli.main import run
from app.client.catalog import RemoteCatalog
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.settings import Settings
from app.testing import icetower_catalog

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "identifier-field-ids": [1],
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True, "doc": "the order"},
        {
            "id": 2,
            "name": "place",
            "required": False,
            "type": {
                "type": "struct",
                "fields": [{"id": 3, "name": "city", "type": "string", "required": False}],
            },
        },
    ],
}


@dataclass(frozen=True)
class Outcome:
    """What one command did."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Icetower = Callable[..., Outcome]


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    with icetower_catalog() as url:
        yield url


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and no variable of ours."""
    for name in (*Settings.model_fields, "config", "uri", "warehouse"):
        monkeypatch.delenv(f"ICETOWER_{name.upper()}", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def bare(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Icetower:
    """Run `icetower` with these arguments, in an empty folder."""

    def icetower(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["icetower", *arguments])
        with pytest.raises(SystemExit) as left:
            run()
        captured = capfd.readouterr()
        return Outcome(int(left.value.code or 0), captured.out, captured.err)

    return icetower


@pytest.fixture
def icetower(bare: Icetower, server_url: str, monkeypatch: pytest.MonkeyPatch) -> Icetower:
    """Run `icetower` against a server."""
    monkeypatch.setenv("ICETOWER_URI", server_url)
    return bare


@pytest.fixture
def catalog(server_url: str) -> Iterator[RemoteCatalog]:
    with RemoteCatalog(server_url) as connected:
        yield connected


@pytest.fixture
def namespace(catalog: RemoteCatalog, request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    name = re.sub(r"\W+", "_", str(request.node.name))
    catalog.namespaces.create(Namespace((name,)), {"owner": "anna"})
    return name


@pytest.fixture
def table(catalog: RemoteCatalog, namespace: str) -> str:
    """A table with one snapshot, `<namespace>.orders`."""
    identifier = TableIdentifier(Namespace((namespace,)), "orders")
    spec = {
        "spec-id": 0,
        "fields": [{"source-id": 1, "field-id": 1000, "transform": "bucket[4]", "name": "shard"}],
    }
    order = {
        "order-id": 1,
        "fields": [
            {"source-id": 3, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}
        ],
    }
    made = catalog.tables.create(
        identifier, SCHEMA, partition_spec=spec, write_order=order, properties={"team": "lake"}
    )
    snapshot = {
        "snapshot-id": 77,
        "sequence-number": 1,
        "timestamp-ms": made.metadata["last-updated-ms"],
        "manifest-list": f"{made.metadata['location']}/metadata/list.avro",
        "summary": {"operation": "append", "added-records": "5", "total-records": "5"},
        "schema-id": 0,
    }
    catalog.tables.commit(
        identifier,
        [
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 77},
        ],
    )
    return f"{namespace}.orders"


@pytest.fixture
def view(catalog: RemoteCatalog, namespace: str) -> str:
    """A view, `<namespace>.big`."""
    version = {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": 1_700_000_000_000,
        "summary": {},
        "default-namespace": [namespace],
        "representations": [{"type": "sql", "dialect": "spark", "sql": "SELECT id\nFROM orders"}],
    }
    catalog.views.create(TableIdentifier(Namespace((namespace,)), "big"), SCHEMA, version)
    return f"{namespace}.big"
