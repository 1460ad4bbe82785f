"""A catalog for thousands of random requests: tables that are put back after each, and clients' parsers as judges."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from pyiceberg.table.metadata import TableMetadataUtil

from app.engine.model.ids import Location
from app.engine.model.table_metadata import read_table_metadata
from app.fileio.memory import SHARED
from tests.bad_input.commit_bodies import FORMAT_VERSIONS, Json, table_with_history
from tests.bad_input.mutations import as_json
from tests.builders.http_catalog import http_catalog, make_namespace, make_view

NS = "/v1/namespaces/a"
WAREHOUSE = "memory://fuzzing-ground"
KNOWN_BLOB = "apache-datasketches-theta-v1"
WEAKNESSES = (
    # Its classes take fields by keyword, so one that is called like this parameter ends in a TypeError.
    "got multiple values for argument 'self'",
    "Unsupported field type: 'variant'",
    "Type not recognized: variant",
)
"""Words of PyIceberg about metadata that is right all the same."""


@dataclass(frozen=True)
class Ground:
    """A catalog with one table in each format version, and a view."""

    client: httpx.Client
    tables: Mapping[int, Json]
    """What loading each table answers while nothing has happened to it."""
    view: Json
    database: Path

    def commit(self, version: int, body: Any) -> httpx.Response:
        """Commit to the table of a format version."""
        return self.client.post(path_of(version), content=as_json(body))

    def restore(self, version: int) -> None:
        """Bring a table back to where it was."""
        location = self.tables[version]["metadata-location"]
        body = {"name": f"v{version}", "metadata-location": location, "overwrite": True}
        self.client.post(f"{NS}/register", json=body).raise_for_status()
        self.forget()

    def forget(self) -> None:
        """Forget what has left the catalog: the next request has the same ids, and did not land before."""
        with closing(sqlite3.connect(self.database, timeout=30)) as connection, connection:
            connection.execute("DELETE FROM file_deletions")
            connection.execute("DELETE FROM dropped")
            connection.execute(
                "DELETE FROM pointer_history WHERE pointer_id NOT IN (SELECT id FROM pointers)"
            )

    def write(self, name: str, document: Any) -> str:
        """Lay a document, or bytes as they are, into the warehouse; return its location."""
        location = Location(f"{WAREHOUSE}/{name}")
        SHARED.write_new(location, document if isinstance(document, bytes) else as_json(document))
        return location


@contextmanager
def fuzzing_ground(folder: Path) -> Iterator[Ground]:
    """Serve such a catalog until the block ends."""
    for file in list(SHARED.list_files(Location(WAREHOUSE))):
        SHARED.delete(file.location)
    # Files in memory: there are thousands, and waiting for a disk would take most of the time.
    with http_catalog(folder, default_warehouse_location=WAREHOUSE) as client:
        make_namespace(client, "a")
        tables = {version: table_with_history(client, "a", version) for version in FORMAT_VERSIONS}
        yield Ground(client, tables, make_view(client, "a", "v"), folder / "icetower.db")


def path_of(version: int) -> str:
    """Return the path of the table of a format version."""
    return f"{NS}/tables/v{version}"


def check_answered(response: httpx.Response) -> None:
    """Fail if the server failed, or refused in another shape than the protocol's."""
    assert response.status_code < 500, response.text
    if response.status_code >= 400:
        assert response.json()["error"]["code"] == response.status_code


def check_readable(document: Json) -> None:
    """Fail if our reader does not read table metadata as it stands, or PyIceberg cannot read it."""
    assert read_table_metadata(json.dumps(document).encode()).to_object() == document
    known = json.loads(json.dumps(document))
    for file in known["statistics"]:
        for blob in file["blob-metadata"]:
            blob["type"] = KNOWN_BLOB  # PyIceberg knows two of all there are
    if any("manifest-list" not in snapshot for snapshot in known["snapshots"]):
        return  # early v1; PyIceberg never knew it
    try:
        TableMetadataUtil.parse_obj(known)
    except (ValueError, TypeError) as error:
        if not any(weakness in str(error) for weakness in WEAKNESSES):
            raise
