"""The application as it is put together, started and stopped."""

from __future__ import annotations

import asyncio
import logging
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from fastapi import FastAPI

from app.database.connections.sqlite_files import found_file
from app.database.schema.migrations import downgrade, migrate
from app.database.schema.revisions import found_revision, known_revision
from app.database.warehouses import Layout, Warehouses
from app.engine.model.ids import Location
from app.errors import DatabaseBehind, DatabaseUnavailable
from app.fileio.local import LocalFiles
from app.main import build_server, create_app, open_database, prepare
from app.setting_types import SecretProperties
from app.settings import Settings
from tests.builders.http_catalog import http_catalog, make_namespace, make_table, settings_in
from tests.e2e.patience import wait_until

ROOT = Path(__file__).parents[2]


def start_and_stop(app: FastAPI) -> None:
    async def run() -> None:
        async with app.router.lifespan_context(app):
            pass

    asyncio.run(run())


def test_first_start_makes_database_and_default_warehouse(tmp_path: Path) -> None:
    settings = settings_in(
        tmp_path / "new" / "folder",
        default_warehouse="lake",
        default_warehouse_properties=SecretProperties({"a": "b"}),
        default_warehouse_storage=SecretProperties({"s3.region": "x"}),
    )

    start_and_stop(create_app(settings))

    database = open_database(settings)
    warehouse = build_server(settings, database).warehouses.find("lake")
    database.close()
    assert warehouse is not None
    assert warehouse.root_location == settings.default_warehouse_location
    assert (warehouse.default_properties, warehouse.storage) == ({"a": "b"}, {"s3.region": "x"})


def test_settings_that_came_too_late_for_the_default_warehouse_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    storage = {"s3.region": "x", "s3.secret-access-key": "before"}
    start_and_stop(create_app(settings_in(tmp_path, default_warehouse_storage=SecretProperties(storage))))
    assert "has no effect" not in caplog.text

    rotated = SecretProperties(storage | {"s3.secret-access-key": "hunter2"})
    start_and_stop(create_app(settings_in(tmp_path, default_warehouse_storage=rotated)))

    assert "default_warehouse_storage has no effect on s3.secret-access-key, which" in caplog.text
    assert "hunter2" not in caplog.text


def test_next_start_leaves_the_default_warehouse_as_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    start_and_stop(create_app(settings_in(tmp_path)))
    moved = settings_in(tmp_path, default_warehouse_location=str(tmp_path / "elsewhere"))

    with caplog.at_level(logging.WARNING):
        start_and_stop(create_app(moved))

    database = open_database(moved)
    warehouse = build_server(moved, database).warehouses.find("default")
    database.close()
    assert warehouse is not None
    assert warehouse.root_location.endswith("/warehouse")
    assert "where it was created" in caplog.text
    assert "(icetower warehouse drop default), and start the server again" in caplog.text


def test_processes_that_start_at_once_do_not_trip_over_each_other(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)

    def start() -> str | None:
        with closing(open_database(settings)) as database:
            prepare(settings, database, build_server(settings, database))
            return found_revision(database)

    with ThreadPoolExecutor(4) as starters:
        revisions = [starters.submit(start) for _ in range(4)]

    assert {revision.result() for revision in revisions} == {known_revision()}


def test_database_of_another_revision_is_brought_up_to_date_on_sqlite(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    database = open_database(settings)
    migrate(database)
    downgrade(database, "base")
    database.close()

    start_and_stop(create_app(settings))


class Postgres:
    """What `prepare` sees of a Postgres database that nobody has migrated."""

    dialect_name = "postgresql"

    def __init__(self, settings: Settings) -> None:
        self._database = open_database(settings)
        self.read = self._database.read
        self.close = self._database.close


def test_server_does_not_start_on_a_postgres_database_that_is_behind(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    database = Postgres(settings)
    catalog = build_server(settings, open_database(settings))

    with pytest.raises(DatabaseBehind, match="icetower migrate"):
        prepare(settings, database, catalog)  # type: ignore[arg-type]  # as much of a database as is asked of it
    database.close()


@pytest.mark.parametrize(
    ("host", "warned"),
    [("127.0.0.1", False), ("localhost", False), ("::1", False), ("0.0.0.0", True), ("example.org", True)],
)
def test_server_that_is_open_to_others_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, host: str, warned: bool
) -> None:
    with caplog.at_level(logging.WARNING):
        start_and_stop(create_app(settings_in(tmp_path, host=host)))

    assert ("without authentication" in caplog.text) is warned


def test_files_and_folders_of_a_purged_table_go_at_once_in_the_background(tmp_path: Path) -> None:
    """The interval is for what is left."""
    with http_catalog(tmp_path, file_deletion_interval_seconds=3600) as api:
        make_namespace(api, "a")
        location = make_table(api, "a", "t")["metadata-location"].removeprefix("file://")
        folder = Path(location).parent.parent
        assert Path(location).exists()
        api.delete("/v1/namespaces/a/tables/t?purgeRequested=true")
        wait_until(lambda: not folder.exists())

    assert folder.parent.exists(), "the folder of the namespace is not the table's"


def test_one_warehouse_is_shared_by_servers_on_one_database(tmp_path: Path) -> None:
    with http_catalog(tmp_path) as first, http_catalog(tmp_path) as second:
        make_namespace(first, "a")
        created = make_table(first, "a", "t")

        assert second.get("/v1/namespaces/a/tables/t").json() == created


def test_a_server_on_sqlite_and_a_local_folder_does_without_large_libraries(tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from tests.builders.http_catalog import http_catalog, make_namespace, make_table, set_properties
with http_catalog(Path({str(tmp_path)!r})) as http:
    make_namespace(http, "ns")
    make_table(http, "ns", "orders")
    assert http.post("/v1/namespaces/ns/tables/orders", json=set_properties(k="v")).status_code == 200
    assert http.get("/v1/namespaces/ns/tables/orders").status_code == 200
print({{"numpy", "pandas", "psycopg", "pyarrow", "pyiceberg", "pyspark"}} & set(sys.modules))
"""

    # They would double the memory after a start, and make it longer.
    assert subprocess.check_output([sys.executable, "-c", program], text=True, cwd=ROOT) == "set()\n"


def test_a_server_imports_nothing_that_only_migrations_and_descriptions_need() -> None:
    program = """
import sys
import app.cli.server.serving
print({"alembic", "sqlalchemy.dialects.postgresql", "yaml"} & set(sys.modules))
"""

    # Each of them makes a start a tenth of a second longer.
    assert subprocess.check_output([sys.executable, "-c", program], text=True, cwd=ROOT) == "set()\n"


def test_the_stores_of_file_system_warehouses_are_tried_at_start(tmp_path: Path) -> None:
    tried: list[tuple[str, bool]] = []

    class TriedFiles(LocalFiles):
        def check_writes_once(self, location: Location) -> None:
            tried.append((location, threading.current_thread().daemon))

    start_and_stop(create_app(settings_in(tmp_path)))
    with closing(open_database(settings_in(tmp_path))) as database:
        Warehouses(database).create("files", f"file://{tmp_path}/files", layout=Layout.HADOOP, created_ms=1)

    start_and_stop(create_app(settings_in(tmp_path), files_of=lambda _: TriedFiles()))
    for thread in threading.enumerate():
        if thread.name == "store checks":
            thread.join()

    assert tried == [(f"file://{tmp_path}/files", True)]


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_process_that_is_started_later_works_on_the_file_of_the_first_only(
    tmp_path: Path, is_replaced: bool
) -> None:
    folder, away = tmp_path / "data", tmp_path / "away"
    settings, other = settings_in(folder), settings_in(tmp_path / "other")
    for each in (settings, other):
        start_and_stop(create_app(each))
    opened = found_file(settings.database_url.get_secret_value())
    start_and_stop(create_app(settings, opened=opened))
    folder.rename(away)
    if is_replaced:
        shutil.copytree(tmp_path / "other", folder)

    with pytest.raises(DatabaseUnavailable, match="was deleted, moved or replaced"):
        start_and_stop(create_app(settings, opened=opened))

    assert folder.exists() == is_replaced
