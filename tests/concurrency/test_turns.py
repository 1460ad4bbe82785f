"""A server process that is slower than another one gets its turn at a table that both change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Condition, Event, Thread

import httpx
import pytest

from app.catalog.commits.landing import land_one
from app.catalog.commits.table_commits import TableCommit
from app.catalog.context.catalog import Catalog
from app.database.connections.process_turns import ProcessTurns
from app.engine.change.updates import SetProperties
from app.engine.model.identifiers import Namespace, TableIdentifier
from app.errors import PointerMoved
from app.main import build_server, open_database
from app.setting_types import DatabaseUrl
from app.settings import Settings
from tests.builders.catalogs import CALLER
from tests.concurrency.writers import load, make_tables

pytestmark = pytest.mark.slow
COMMIT = TableCommit(TableIdentifier(Namespace(("ns",)), "t"), [], [SetProperties(updates={"slow": "set"})])
A_WHOLE_COMMIT = 2
"""The first answer may be of a commit that had moved the pointer before."""


class Rival:
    """A client that commits to a table without a pause, through another process."""

    def __init__(self, url: str, patience_s: float) -> None:
        self._url, self._patience_s = url, patience_s
        self._landed = 0
        self._one_more = Condition()
        self._ended = Event()
        self._thread = Thread(target=self._work)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Commit during the block."""
        self._thread.start()
        try:
            yield
        finally:
            self._ended.set()
            self._thread.join()

    def let_land(self, step: str) -> None:
        """Before a pointer is moved, wait until others have landed, which never do if they wait for a turn."""
        if step == "before_put":
            with self._one_more:
                enough = self._landed + A_WHOLE_COMMIT
                self._one_more.wait_for(lambda: self._landed >= enough, timeout=self._patience_s)

    def _work(self) -> None:
        body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"fast": "set"}}]}
        with httpx.Client(base_url=self._url, timeout=60) as client:
            while not self._ended.is_set():
                client.post("/v1/namespaces/ns/tables/t", json=body).raise_for_status()
                with self._one_more:
                    self._landed += 1
                    self._one_more.notify_all()


@contextmanager
def slow_process(database_url: str, folder: Path, rival: Rival) -> Iterator[Catalog]:
    """Yield the catalog as this process has it: whenever it is about to commit, its rival is faster."""
    settings = Settings(
        database_url=DatabaseUrl(database_url), default_warehouse_location=str(folder / "warehouse")
    )
    with closing(open_database(settings)) as database:
        server = build_server(settings, database, step=rival.let_land)
        warehouse = server.warehouses.find("default")
        assert warehouse is not None
        yield Catalog(server, warehouse, CALLER)


def test_a_slower_process_gets_its_turn(servers: list[str], database_url: str, tmp_path: Path) -> None:
    make_tables(servers[0], "t")
    rival = Rival(servers[0], patience_s=0.5)
    with slow_process(database_url, tmp_path, rival) as catalog, rival.at_work():
        land_one(catalog, COMMIT)
    assert load(servers[0], "t")["properties"]["slow"] == "set"


def test_without_turns_it_would_lose_every_race(
    servers: list[str], database_url: str, tmp_path: Path
) -> None:
    make_tables(servers[0], "t")
    rival = Rival(servers[0], patience_s=60)
    with slow_process(database_url, tmp_path, rival) as catalog, rival.at_work():
        alone = replace(catalog, server=replace(catalog.server, turns=ProcessTurns(None)))
        with pytest.raises(PointerMoved):
            land_one(alone, COMMIT)
    assert "slow" not in load(servers[0], "t")["properties"]
