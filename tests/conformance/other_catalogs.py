"""Moves from and to catalogs of others, by the command line; `scripts/other-catalogs` runs this."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from app.maintenance.spark.spark_sessions import SparkSessions
from benchmarks.contention.fixture.server import fixture
from benchmarks.servers import free_port, running
from tests.servers.commands import Ended, icetower_command
from tests.servers.guarded import CLIENT_ID, SECRET, guarded
from tests.servers.icetower import icetower_process
from tests.servers.s3 import S3Server

ON_S3 = {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO"}
ROWS = [(1, "a"), (3, "c")]
VIEW = {
    "name": "v",
    "schema": {
        "type": "struct",
        "schema-id": 0,
        "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
    },
    "view-version": {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": 1_700_000_000_000,
        "summary": {},
        "default-namespace": ["eu"],
        "representations": [{"type": "sql", "dialect": "spark", "sql": "SELECT id FROM eu.orders"}],
    },
    "properties": {},
}


class Run:
    """One Spark, and what was wrong so far."""

    def __init__(self, session: Any, folder: Path) -> None:
        self._session, self._folder = session, folder
        self.flaws: list[str] = []

    def mount(self, name: str, uri: str, properties: Mapping[str, str]) -> None:
        """Let Spark see a catalog."""
        prefix = f"spark.sql.catalog.{name}"
        self._session.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
        for key, text in {"type": "rest", "uri": uri, "cache-enabled": "false", **properties}.items():
            self._session.conf.set(f"{prefix}.{key}", text)

    def fill(self, name: str, views: str, headers: Mapping[str, str] | None = None) -> None:
        """Make a table with deletes, and a view by HTTP: Spark asks only servers that list the endpoint."""
        for statement in (
            f"CREATE NAMESPACE {name}.eu WITH DBPROPERTIES ('boss' = 'anna')",
            f"CREATE TABLE {name}.eu.orders (id bigint, word string) PARTITIONED BY (word)",
            f"INSERT INTO {name}.eu.orders VALUES (1, 'a'), (2, 'b'), (3, 'c')",
            f"DELETE FROM {name}.eu.orders WHERE id = 2",
        ):
            self._session.sql(statement)
        httpx.post(views, json=VIEW, headers=headers).raise_for_status()

    def move(self, what: str, *arguments: str, status: int = 0, said: str = "") -> None:
        """Run a command that moves, and check how it ends."""
        report = str(self._folder / f"{what}.ndjson")
        done: Ended = icetower_command(self._folder, *arguments, "--report", report)
        print(f"{what}: {done.out.splitlines()[-1] if done.out else done.err}")
        self.check(done.status == status and said in done.out + done.err, f"{what}: {done.out}{done.err}")

    def check_rows(self, name: str) -> None:
        """Check that a catalog has the table, and goes on with it."""
        rows = sorted(tuple(row) for row in self._session.sql(f"SELECT * FROM {name}.eu.orders").collect())
        self.check(rows == ROWS, f"rows in {name}: {rows}")

    def check(self, is_right: bool, what: str) -> None:
        """Note what is wrong."""
        if not is_right:
            print(f"  WRONG: {what}")
            self.flaws.append(what)


def with_fixture(run: Run, folder: Path) -> None:
    """Read Iceberg's JdbcCatalog directly and through REST, and register in it."""
    lake = {"default_warehouse_location": str(folder)}
    (folder / "one").mkdir()
    (folder / "two").mkdir()
    with (
        fixture(folder / "fixture") as place,
        icetower_process(folder / "one", **lake) as one,
        icetower_process(folder / "two", **lake) as two,
    ):
        theirs = place.servers[0].url
        run.mount("theirs", theirs, {})
        run.fill("theirs", f"{theirs}/v1/namespaces/eu/views")
        database = f"sqlite:///{folder}/fixture/catalog.db"
        run.move("sql", "import", "sql", database, "--mode", "look-on", "--uri", one)
        run.mount("one", one, {})
        run.check_rows("one")
        run.move("rest", "import", "rest", theirs, "--mode", "fence", "--uri", two)
        run.mount("two", two, {})
        run.check_rows("two")
        run.move("fenced", "import", "rest", theirs, "--uri", one, status=1, said="was moved to")
        run.move("there", "export", theirs, "--uri", two)
        httpx.post(f"{two}/v1/namespaces/eu/views", json={**VIEW, "name": "w"}).raise_for_status()
        run.move("views", "export", theirs, "--uri", two, status=1, said="no register-view")


LIFETIME_S = 6
"""Of a token; a move takes longer."""


@dataclass(frozen=True)
class Login:
    """How callers of a catalog log in."""

    public_key: str
    options: list[str]
    """For our commands: a credential, whose tokens end soon."""
    token: str
    """For others: one that lasts."""


@contextmanager
def issuer(folder: Path) -> Iterator[Login]:
    """Run a token endpoint whose tokens are signed."""
    private, public = folder / "key.pem", folder / "key.der"
    _openssl("genpkey", "-algorithm", "RSA", "-out", str(private))
    _openssl("pkey", "-in", str(private), "-pubout", "-outform", "DER", "-out", str(public))

    def new_token(lifetime_s: int = LIFETIME_S) -> str:
        now = int(time.time())
        claims = {"sub": CLIENT_ID, "iss": "tests", "iat": now, "exp": now + lifetime_s}
        parts = [_base64(json.dumps(part).encode()) for part in ({"alg": "RS256", "typ": "JWT"}, claims)]
        signed = ".".join(parts)
        return (
            f"{signed}.{_base64(_openssl('dgst', '-sha256', '-sign', str(private), content=signed.encode()))}"
        )

    with guarded() as guard:
        guard.new_token, guard.expires_in = new_token, LIFETIME_S
        options = ["-p", f"credential={CLIENT_ID}:{SECRET}", "-p", f"oauth2-server-uri={guard.token_uri}"]
        yield Login(base64.b64encode(public.read_bytes()).decode(), options, new_token(3600))


def _openssl(*arguments: str, content: bytes = b"") -> bytes:
    return subprocess.run(["openssl", *arguments], input=content, capture_output=True, check=True).stdout


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


@contextmanager
def nessie(java: str, jar: Path, folder: Path, store: S3Server, public_key: str | None) -> Iterator[str]:
    """Run Nessie in memory, on a bucket; with a key it asks for tokens that are signed with it."""
    port, management, storage = free_port(), free_port(), store.storage
    store_options = "nessie.catalog.service.s3.default-options"
    options = {
        "quarkus.http.port": str(port),
        "quarkus.management.port": str(management),
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": "lake",
        "nessie.catalog.warehouses.lake.location": "s3://lake/nessie",
        f"{store_options}.region": "us-east-1",
        f"{store_options}.endpoint": storage["s3.endpoint"],
        f"{store_options}.path-style-access": "true",
        f"{store_options}.request-signing-enabled": "false",
        f"{store_options}.access-key": "urn:nessie-secret:quarkus:icetower.key",
        "icetower.key.name": storage["s3.access-key-id"],
        "icetower.key.secret": storage["s3.secret-access-key"],
    }
    if public_key is not None:
        options |= {"nessie.server.authentication.enabled": "true", "quarkus.oidc.public-key": public_key}
    command = [java, "-Xmx900m", *(f"-D{key}={text}" for key, text in options.items()), "-jar", str(jar)]
    address = f"http://127.0.0.1:{management}"
    with running(command, address, "/q/health", folder, dict(os.environ)):
        yield f"http://127.0.0.1:{port}/iceberg"


def with_nessie(run: Run, java: str, jar: Path, folder: Path, login: Login | None) -> None:
    """Read the main branch of Nessie, and register in it again."""
    folder.mkdir()
    name, options = folder.name, login.options if login else []
    token = {"token": login.token} if login else {}
    headers = {"Authorization": f"Bearer {login.token}"} if login else {}
    with S3Server() as store:
        store.create_bucket("lake")
        storage = json.dumps(store.storage)
        settings = {"default_warehouse_location": "s3://lake", "default_warehouse_storage": storage}
        with (
            nessie(java, jar, folder, store, login.public_key if login else None) as theirs,
            icetower_process(folder, **settings, default_warehouse_properties=storage) as uri,
        ):
            run.mount(name, f"{theirs}/main", {**ON_S3, **store.storage, "warehouse": "lake", **token})
            run.fill(name, f"{theirs}/v1/main%7Clake/namespaces/eu/views", headers)
            of_nessie = [f"{theirs}/main", "--from-warehouse", "lake", "--uri", uri]
            if login:
                run.move(
                    f"{name} without a token",
                    "import",
                    "rest",
                    *of_nessie,
                    status=1,
                    said="wants to know who asks",
                )
            for mode in ("look-on", "fence", "adopt"):
                run.move(f"{name} {mode}", "import", "rest", *of_nessie, *options, "--mode", mode)
            run.mount(f"of_{name}", uri, ON_S3)
            run.check_rows(f"of_{name}")
            back = ["export", f"{theirs}/main", "--to-warehouse", "lake", "--uri", uri, *options]
            run.move(f"back to {name}", *back, status=1, said="no register-view")
            run.check_rows(name)


def main(folder: Path) -> int:
    jars = ",".join(map(str, sorted(folder.glob("spark/*.jar"))))
    settings = {"spark.driver.memory": "1g", "spark.jars": jars}
    with closing(SparkSessions("local[2]", settings)) as sessions:
        run = Run(sessions.open(), folder)
        with_fixture(run, folder)
        runners = list(folder.glob("nessie/*.jar"))
        if runners:
            with issuer(folder) as login:
                for name, needed in (("open_nessie", None), ("guarded_nessie", login)):
                    with_nessie(run, os.environ["JAVA_OF_NESSIE"], runners[0], folder / name, needed)
        else:
            print("Nessie is left out: JAVA_OF_NESSIE names no Java.")
    print("All is as it should be." if not run.flaws else f"{len(run.flaws)} things are wrong.")
    return 1 if run.flaws else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
