"""A catalog inside a test: what it does for clients, and what it leaves behind."""

from __future__ import annotations

import logging
import tempfile
import threading
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
import uvicorn
from pyiceberg.catalog import load_catalog

from app.client.catalog import RemoteCatalog
from app.client.http.failures import CatalogUnreachable
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.errors import DatabaseUnavailable, InvalidSetting
from app.testing import icetower_catalog, running_catalog

ORDERS = pa.table({"id": [1, 2, 3]})
SALES = Namespace(("sales",))


def test_pyiceberg_writes_and_reads_a_table() -> None:
    with icetower_catalog() as url:
        catalog = load_catalog("test", type="rest", uri=url)
        catalog.create_namespace("sales")
        table = catalog.create_table("sales.orders", schema=ORDERS.schema)
        table.append(ORDERS)

        found = catalog.load_table("sales.orders").scan().to_arrow()

    assert found["id"].to_pylist() == [1, 2, 3]


def test_two_catalogs_know_nothing_of_each_other() -> None:
    with icetower_catalog() as one, icetower_catalog() as other:
        with RemoteCatalog(one) as catalog:
            catalog.namespaces.create(SALES)
        with RemoteCatalog(other) as catalog:
            assert not catalog.namespaces.exists(SALES)


def test_after_the_block_nothing_is_left() -> None:
    with icetower_catalog() as url, RemoteCatalog(url) as catalog:
        catalog.namespaces.create(SALES)
        table = catalog.tables.create(TableIdentifier(SALES, "orders"), {"type": "struct", "fields": []})
        assert table.metadata_location is not None
        metadata_file = Path(urlsplit(table.metadata_location).path)
        assert metadata_file.is_file()

    assert not metadata_file.parents[4].exists()
    with pytest.raises(CatalogUnreachable):
        RemoteCatalog(url)


def test_threads_end_with_it() -> None:
    before = set(threading.enumerate())
    with icetower_catalog() as url, RemoteCatalog(url) as catalog:
        catalog.namespaces.create(SALES)
        table = TableIdentifier(SALES, "orders")
        catalog.tables.create(table, {"type": "struct", "fields": []})
        catalog.tables.expire(table, dry_run=True)
        started = set(threading.enumerate()) - before

    assert any(thread.name.startswith("crew-") for thread in started)
    for thread in started:
        thread.join(30)
        assert not thread.is_alive(), thread


def test_the_access_log_of_other_servers_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    access_log = logging.getLogger("uvicorn.access")
    monkeypatch.setattr(access_log, "propagate", True)

    with icetower_catalog():
        pass

    assert access_log.propagate


def test_a_failing_block_cleans_up_too() -> None:
    with pytest.raises(ZeroDivisionError), icetower_catalog() as url:
        raise ZeroDivisionError

    with pytest.raises(CatalogUnreachable):
        RemoteCatalog(url)


def test_ctrl_c_while_it_starts_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            raise KeyboardInterrupt

    class Server(running_catalog._AnnouncingServer):
        def __init__(self, config: uvicorn.Config) -> None:
            super().__init__(config)
            self.is_settled = Interrupted()

    monkeypatch.setattr(running_catalog, "_AnnouncingServer", Server)
    before = set(threading.enumerate())

    with pytest.raises(KeyboardInterrupt), icetower_catalog():
        pass

    assert set(threading.enumerate()) <= before


def test_the_warehouse_may_be_in_memory() -> None:
    with icetower_catalog(warehouse_location="memory://some-test") as url, RemoteCatalog(url) as catalog:
        catalog.namespaces.create(SALES)
        table = catalog.tables.create(TableIdentifier(SALES, "orders"), {"type": "struct", "fields": []})

        assert str(table.metadata_location).startswith("memory://some-test/")
        assert catalog.tables.load(TableIdentifier(SALES, "orders")).metadata == table.metadata


def test_database_and_warehouse_may_be_ones_that_stay(tmp_path: Path) -> None:
    def kept() -> AbstractContextManager[str]:
        return icetower_catalog(
            database_url=f"sqlite:///{tmp_path}/kept/x.db", warehouse_location=f"{tmp_path}/lake"
        )

    with kept() as url, RemoteCatalog(url) as catalog:
        catalog.namespaces.create(SALES)
        made = catalog.tables.create(TableIdentifier(SALES, "orders"), {"type": "struct", "fields": []})

    with kept() as url, RemoteCatalog(url) as catalog:
        loaded = catalog.tables.load(TableIdentifier(SALES, "orders"))

    assert loaded.metadata_location == made.metadata_location
    assert str(made.metadata_location).startswith(f"file://{tmp_path}/lake/")


def test_a_database_whose_warehouse_was_in_a_temporary_folder_is_refused(tmp_path: Path) -> None:
    def kept() -> AbstractContextManager[str]:
        return icetower_catalog(database_url=f"sqlite:///{tmp_path}/x.db")

    with kept():
        pass

    with pytest.raises(InvalidSetting, match="give that as warehouse_location"), kept():
        pass


def test_the_temporary_folder_may_have_a_percent_sign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a%20b"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))

    with icetower_catalog() as url, RemoteCatalog(url) as catalog:
        catalog.namespaces.create(SALES)
        assert list(folder.glob("icetower-*/icetower.db"))

    assert list(tmp_path.iterdir()) == [folder]
    assert list(folder.iterdir()) == []


def test_clients_receive_the_properties_given() -> None:
    with icetower_catalog(client_properties={"clients": "4"}) as url, RemoteCatalog(url) as catalog:
        assert catalog.properties["clients"] == "4"


def test_settings_of_the_user_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ICETOWER_PORT", "nonsense")
    (tmp_path / "icetower.toml").write_text("nonsense = 1\n")

    with icetower_catalog() as url, RemoteCatalog(url) as catalog:
        assert list(catalog.namespaces.list()) == []

    assert sorted(path.name for path in tmp_path.iterdir()) == ["icetower.toml"]


def test_what_cannot_work_is_raised_where_it_was_asked_for() -> None:
    with pytest.raises(DatabaseUnavailable), icetower_catalog(database_url="postgresql://u@127.0.0.1:1/d"):
        pass
    with (
        pytest.raises(InvalidSetting, match="s3:"),
        icetower_catalog(warehouse_location="s3://bucket/../other"),
    ):
        pass
