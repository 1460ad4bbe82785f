"""On a real folder and on S3: what servers left is found, and what lies in a folder keeps new tables away."""

from __future__ import annotations

import re
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog.context.catalog import Catalog
from app.catalog.context.places.file_names import new_content_uuid, new_file_uuid
from app.catalog.deletions.sweeps import sweep_one
from app.catalog.tables import purge_table
from app.database.schema.rows import file_deletions, pointer_history
from app.engine.model.identifiers import TableIdentifier
from app.engine.model.ids import Location
from app.fileio.schemes import files_for
from tests.builders.catalogs import RULES, new_warehouse, server_on
from tests.builders.partitioned_files import PartitionedFiles
from tests.builders.queues import work_off_one
from tests.builders.tables import DEPARTURES, FLIGHTS, load_table, table_in
from tests.servers.s3 import S3Server
from tests.unit.catalog.deletions.sweeps.test_metadata_files import DAY_MS, execute

_BUCKET = "sweeps"


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.s3)])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    """A warehouse whose servers take files for old at once."""
    root, storage = f"file://{tmp_path}/wh", dict[str, str]()
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3_server")
        server.create_bucket(_BUCKET)
        root, storage = f"s3://{_BUCKET}/{uuid.uuid4()}", server.storage
    files = files_for(storage, local_roots=(root,))
    rules = replace(RULES, orphan_age_ms=1)
    return new_warehouse(server_on(f"sqlite:///{tmp_path}/icetower.db", files, rules=rules), root=root)


def files_in(catalog: Catalog) -> set[str]:
    folder = Location(load_table(catalog).metadata.location)
    return {file.location for file in catalog.files.list_files(folder)}


def left_behind(catalog: Catalog) -> set[str]:
    """Write what a killed server would have left."""
    metadata = load_table(catalog).metadata
    folder = f"{metadata.location}/metadata"
    made = set()
    for name in ("{}-m0.avro", "snap-4711-1-{}.avro", "partition-stats-4711-{}.parquet"):
        made.add(f"{folder}/{name.format(new_content_uuid(catalog.server, metadata.uuid, folder))}")
    made.add(f"{folder}/00001-{new_file_uuid(catalog.server)}.metadata.json")
    for location in made:
        catalog.files.write_new(Location(location), b"never read")
    return made


def test_what_servers_left_goes_in_each_store(catalog: Catalog) -> None:
    made = PartitionedFiles.made(catalog)
    made.fill(2)
    needed = files_in(catalog)
    left = left_behind(catalog)
    now_ms = catalog.server.metadata_sweeps.now_ms()
    execute(catalog, pointer_history.update().values(at_ms=now_ms + DAY_MS))
    is_first = pointer_history.c.event == "created"
    execute(catalog, pointer_history.update().where(is_first).values(at_ms=now_ms - DAY_MS))

    assert sweep_one(catalog.server)

    assert files_in(catalog) == needed
    assert left.isdisjoint(needed)


def test_a_purge_comes_back_in_each_store(catalog: Catalog) -> None:
    PartitionedFiles.made(catalog).fill(2)
    folder = Location(load_table(catalog).metadata.location)
    left_behind(catalog)
    purge_table(catalog, DEPARTURES)
    patient = replace(catalog.server, rules=replace(catalog.rules, orphan_age_ms=DAY_MS))

    assert work_off_one(patient)
    young = len(list(catalog.files.list_files(folder)))
    execute(catalog, file_deletions.update().values(not_before_ms=0))
    assert work_off_one(catalog.server)

    assert young == 4
    assert list(catalog.files.list_files(folder)) == []
    assert not folder.startswith("file:") or not Path(folder.removeprefix("file://")).exists()


def test_a_folder_with_files_is_not_free(catalog: Catalog) -> None:
    root = catalog.warehouse.root_location
    catalog.files.write_new(Location(f"{root}/flights/used/data/deep/{uuid.uuid4()}.parquet"), b"another's")

    free, used = (
        table_in(catalog, TableIdentifier(FLIGHTS, name)).metadata.location for name in ("free", "used")
    )

    assert free == f"{root}/flights/free"
    assert re.fullmatch(f"{root}/flights/used-[0-9a-f]{{8}}", used)
