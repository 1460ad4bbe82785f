"""A failover to a standby that was behind, under a running server: what is lost is said, and a rebuild has it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import ServiceUnavailableError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from tests.e2e.patience import wait_until
from tests.servers.commands import icetower_command
from tests.servers.icetower import icetower_process
from tests.servers.postgres import PostgresServer

pytestmark = pytest.mark.postgres


def append(catalog: RestCatalog, name: str, number: int) -> str:
    """Append a row as a client does that tries again while the database starts."""

    def is_done() -> bool:
        try:
            table.append(pa.table({"id": [number]}))
        except ServiceUnavailableError:
            return False
        return True

    table = catalog.load_table(f"n.{name}")
    wait_until(is_done)
    return str(table.metadata_location)


def test_what_a_standby_had_not_is_said_and_found(
    own_postgres_server: PostgresServer, tmp_path: Path
) -> None:
    url = own_postgres_server.url(own_postgres_server.create_database())
    settings = {"database_url": url, "file_deletion_interval_seconds": "0.1"}
    with icetower_process(tmp_path, **settings) as server:
        catalog = RestCatalog("site", uri=server)
        catalog.create_namespace("n")
        for name in ("left", "went_on"):
            catalog.create_table(("n", name), Schema(NestedField(1, "id", LongType())))
            append(catalog, name, 1)
        own_postgres_server.stop()
        own_postgres_server.save()
        own_postgres_server.start()
        lost = append(catalog, "left", 2), append(catalog, "went_on", 2), append(catalog, "went_on", 3)
        own_postgres_server.stop()
        own_postgres_server.promote_saved()
        own_postgres_server.start()
        append(catalog, "went_on", 4)
        log = tmp_path / "server.log"

        wait_until(lambda: any(location in log.read_text() for location in lost))

    done = icetower_command(tmp_path, "rebuild", "--yes", "--json", **settings)

    items = {line["name"]: line for line in done.lines if "name" in line}
    assert (items["left"]["action"], items["left"]["metadata-location"]) == ("advance", lost[0])
    assert (items["went_on"]["action"], items["went_on"]["others"]) == ("keep", [lost[2]])
