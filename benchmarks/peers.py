"""The same requests to other catalogs: Iceberg's own for tests, in Java, and that of SeaweedFS, in Go."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.contention.fixture.server import NoFixtureError, fixture
from benchmarks.report import Row, rate
from benchmarks.servers import icetower, wrk
from benchmarks.tables import NAMESPACE, SCHEMA
from tests.servers.s3 import S3Server

TABLES = 64
LISTED = 1_000
SECONDS = 6
WARM_UP_SECONDS = 20
"""For each kind of request, at other catalogs: Java compiles what is busy while it runs."""
MEMORY = Path("/dev/shm")

COMMIT = """
local n = 0
request = function()
  n = n + 1
  local body = '{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"' .. n .. '"}}]}'
  return wrk.format("POST", "%(path)s/tables/t" .. (n %% %(tables)d), %(headers)s, body)
end
"""
"""A commit to each of so many tables in turn."""
CREATE = """
local n = 0
request = function()
  n = n + 1
  local body = '{"name":"%(run)s' .. n .. '","schema":%(schema)s}'
  return wrk.format("POST", "%(path)s/tables", %(headers)s, body)
end
"""
"""A new table with each request."""


@dataclass(frozen=True)
class Catalog:
    """A catalog that runs, and how to reach it."""

    url: str
    prefix: str = ""
    token: str | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        """What each request carries."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def path(self, *pieces: str) -> str:
        """Return a path inside the namespace."""
        return "/".join(["/v1", *filter(None, [self.prefix]), "namespaces", NAMESPACE, *pieces])

    def measure(self, folder: Path, warm_up_s: int = 0) -> dict[str, float]:
        """Return rates of loads, `config`, lists of 1,000 tables, commits over 64 tables, and creations."""
        with httpx.Client(base_url=self.url, timeout=60, headers=dict(self.headers)) as http:
            spaces = self.path().rpartition("/namespaces/")[0] + "/namespaces"
            http.post(spaces, json={"namespace": [NAMESPACE]}).raise_for_status()
            for number in range(LISTED):
                body = {"name": f"t{number}", "schema": SCHEMA}
                http.post(self.path("tables"), json=body).raise_for_status()
        config = f"/v1/config?warehouse={self.prefix}" if self.prefix else "/v1/config"
        reads = {"load": self.path("tables", "t1"), "config": config, "list": self.path("tables")}
        rates: dict[str, float] = {}
        for what, path in reads.items():
            if warm_up_s:
                self._wrk(path, warm_up_s)
            rates[what] = self._wrk(path)
        for what, script in (("commit", COMMIT), ("create", CREATE)):
            for run, seconds in (("warm", warm_up_s), ("run", SECONDS)):
                if seconds:
                    rates[what] = self._wrk("", seconds, self._script(folder, script, run))
        return rates

    def _script(self, folder: Path, template: str, run: str) -> str:
        headers = {"Content-Type": "application/json", **self.headers}
        lua = "{" + ",".join(f'["{name}"]="{value}"' for name, value in headers.items()) + "}"
        found = folder / "requests.lua"
        values = {"path": self.path(), "tables": TABLES, "headers": lua, "run": run, "schema": _SCHEMA}
        found.write_text(template % values)
        return str(found)

    def _wrk(self, path: str, seconds: int = SECONDS, script: str | None = None) -> float:
        header = f"Authorization: Bearer {self.token}" if self.token else None
        return wrk(self.url + path, seconds=seconds, script=script, header=header, may_refuse=True)


_SCHEMA = str(SCHEMA).replace("'", '"').replace("False", "false")


def measure(folder: Path, database: Callable[[], str]) -> list[Row]:
    """Measure Icetower on both databases, on a disk and in memory, beside the catalogs that can be had.

    Args:
        folder: for files.
        database: gives the URL of an empty Postgres database.
    """
    # The others use all processors that there are.
    ours = {
        "SQLite": _ours(folder / "peers-sqlite"),
        "SQLite, two processes": _ours(folder / "peers-sqlite-2", workers="2"),
        "SQLite, two processes, pinned": _ours(
            folder / "peers-sqlite-pinned", workers="2", pin_workers="true"
        ),
        "Postgres": _ours(folder / "peers-postgres", database_url=database()),
        "Postgres, two processes": _ours(folder / "peers-postgres-2", database_url=database(), workers="2"),
        "Postgres, two processes, pinned": _ours(
            folder / "peers-postgres-pinned", database_url=database(), workers="2", pin_workers="true"
        ),
    }
    if MEMORY.is_dir():
        in_memory = Path(tempfile.mkdtemp(prefix="icetower-bench-", dir=MEMORY))
        ours["SQLite, in memory: nothing waits for a disk"] = _ours(in_memory)
        shutil.rmtree(in_memory)
    peers = {"SeaweedFS": _seaweedfs(folder)}
    try:
        with fixture(folder / "peers-fixture") as place:
            peers["Iceberg's fixture"] = Catalog(place.urls[0]).measure(folder, WARM_UP_SECONDS)
    except NoFixtureError as missing:
        print(f"Iceberg's fixture is left out: {missing}")
    rows = [
        Row(
            f"config, {name}",
            rate(found["config"]),
            f"load {rate(found['load'])}",
            _ratio(found["config"], found["load"]),
            "≥ 0.80",
        )
        for name, found in ours.items()
    ]
    for what, title, aims in (
        ("load", "load an empty table", {}),
        ("config", "config", {}),
        ("list", f"list {LISTED:,} tables", {"Iceberg's fixture": "≥ 1.50"}),
        ("commit", f"set-properties over {TABLES} tables, 16 clients", {"SeaweedFS": "≥ 1.00"}),
        ("create", "create tables, 16 clients", {"SeaweedFS": "≥ 1.00"}),
    ):
        for peer, theirs in peers.items():
            rows += [
                Row(
                    f"{title}, {name}",
                    rate(found[what]),
                    f"{peer} {rate(theirs[what])}",
                    _ratio(found[what], theirs[what]),
                    aims.get(peer, "–"),
                )
                for name, found in ours.items()
            ]
    return rows


def _ours(folder: Path, **settings: str) -> dict[str, float]:
    with icetower(folder, **settings) as server:
        return Catalog(server.url).measure(folder)


def _seaweedfs(folder: Path) -> dict[str, float]:
    with S3Server(is_catalog=True) as server:
        server.create_table_bucket(NAMESPACE)
        asked = {
            "grant_type": "client_credentials",
            "client_id": server.access_key,
            "client_secret": server.secret_key,
        }
        token = httpx.post(f"{server.catalog_url}/v1/oauth/tokens", data=asked).json()["access_token"]
        return Catalog(server.catalog_url, NAMESPACE, token).measure(folder)


def _ratio(ours: float, theirs: float) -> str:
    return f"{ours / theirs:.2f}" if theirs else "–"
