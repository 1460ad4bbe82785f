"""Runs Iceberg's own REST Compatibility Kit against `icetower serve`, on each database in turn; see `scripts/rck`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree as ET

import httpx

from tests.servers.icetower import icetower_process
from tests.servers.postgres import PostgresServer

DATABASES = ("sqlite", "postgres")
PROJECT = Path(__file__).with_name("pom.xml")


@contextmanager
def settings_of(database: str) -> Iterator[dict[str, str]]:
    """Start what a database needs; the server's settings for it."""
    # The kit names locations of its own, outside any warehouse.
    settings = {"allow_external_locations": "true", "log_level": "warning"}
    if database == "sqlite":
        yield settings
        return
    with PostgresServer() as postgres:
        yield settings | {"database_url": postgres.url(postgres.create_database())}


def run_kit(database: str, arguments: list[str]) -> str | None:
    """Run the kit once; what it found in one line, or None if all is well.

    Raises:
        RuntimeError: the kit ran no test at all.
    """
    with (
        tempfile.TemporaryDirectory(prefix="icetower-rck-") as name,
        settings_of(database) as settings,
        icetower_process(Path(name), **settings) as url,
    ):
        warehouse = {"name": "rck_warehouse", "root-location": f"file://{name}/rck"}
        httpx.post(f"{url}/management/v1/warehouses", json=warehouse).raise_for_status()
        build = Path(name, "target")
        done = subprocess.run(
            [
                *("mvn", "--batch-mode", "--no-transfer-progress", "-f", PROJECT, "test"),
                *(f"-Drck.uri={url}", f"-DbuildDirectory={build}", *arguments),
            ],
            check=False,
        )
        suites = [ET.parse(report).getroot() for report in build.glob("surefire-reports/TEST-*.xml")]
    counts = {
        word: sum(int(suite.get(word, "0")) for suite in suites)
        for word in ("tests", "failures", "errors", "skipped")
    }
    if not counts["tests"]:
        raise RuntimeError(f"the kit ran no test on {database}; see Maven's output")
    for suite in suites:
        for case in suite.iter("testcase"):
            if (skipped := case.find("skipped")) is not None:
                reason = skipped.get("message", "no reason given")
                sys.stdout.write(f"skipped: {case.get('name')}: {reason}\n")
    said = ", ".join(f"{count} {word}" for word, count in counts.items())
    sys.stdout.write(f"Compatibility kit on {database}: {said}\n")
    return None if done.returncode == 0 else f"{database}: {said}"


def main() -> None:
    """Run it as the arguments say: on both databases, or on one."""
    arguments = sys.argv[1:]
    chosen = [name for name in DATABASES if f"--{name}" in arguments] or DATABASES
    for_maven = [text for text in arguments if text.removeprefix("--") not in DATABASES]
    failed = [found for name in chosen if (found := run_kit(name, for_maven)) is not None]
    if failed:
        sys.exit("The kit failed on " + "; ".join(failed))


if __name__ == "__main__":
    main()
