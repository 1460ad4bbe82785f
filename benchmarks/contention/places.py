"""Where writers meet: the servers of one set-up, with one storage latency and with slots on or off."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contention.cases import Busy, SetUp
from benchmarks.servers import Running, icetower, slow_icetower
from benchmarks.slow_storage import ROOT
from benchmarks.tables import client, make_table
from tests.servers.postgres import PostgresServer

HOLD_SECONDS = {False: "0", True: "20"}
"""`commit_hold_seconds` with slots off, and its default."""


@dataclass(frozen=True)
class Place:
    """Some servers on one database and one warehouse."""

    servers: list[Running]
    postgres: PostgresServer | None = None
    store: tuple[str, str] | None = None
    """The root of the object store, and the folder in which its files are; None for local files."""

    @property
    def urls(self) -> list[str]:
        return [server.url for server in self.servers]

    def make_table(self, name: str, properties: Mapping[str, str]) -> str:
        """Create a table and return its path."""
        with closing(client(self.urls[0])) as http:
            return make_table(http, name, **properties)

    def watch(self) -> Callable[[float, float], Busy]:
        """Begin to count processor time; call what is returned with the clients' own and with the seconds it took."""
        servers, database = self._used_s()

        def busy(clients_s: float, seconds: float) -> Busy:
            servers_now, database_now = self._used_s()
            return Busy(
                (servers_now - servers) / seconds, clients_s / seconds, (database_now - database) / seconds
            )

        return busy

    def _used_s(self) -> tuple[float, float]:
        database = 0.0 if self.postgres is None else self.postgres.processor_s
        return sum(server.processor_s for server in self.servers), database


@contextmanager
def place(
    folder: Path, set_up: SetUp, latency_ms: int, *, has_slots: bool, postgres: PostgresServer
) -> Iterator[Place]:
    """Run the servers of a set-up on an empty database."""
    folder.mkdir(parents=True)
    url = f"sqlite:///{folder / 'icetower.db'}"
    if set_up.is_postgres:
        url = postgres.url(postgres.create_database())
    files = folder / "files"
    settings = {
        "database_url": url,
        "default_warehouse_location": f"{ROOT}/warehouse" if latency_ms else str(files),
        "commit_hold_seconds": HOLD_SECONDS[has_slots],
        "log_level": "warning",
    }

    def server(number: int) -> AbstractContextManager[Running]:
        own = folder / f"server-{number}"
        return (
            slow_icetower(own, latency_ms / 1000, files, **settings)
            if latency_ms
            else icetower(own, **settings)
        )

    with ExitStack() as running:
        servers = [running.enter_context(server(number)) for number in range(set_up.processes)]
        # What starting left to do is not counted.
        time.sleep(0.2)
        store = (ROOT, str(files)) if latency_ms else None
        yield Place(servers, postgres if set_up.is_postgres else None, store)
