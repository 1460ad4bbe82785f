"""`icetower serve`, mostly in a process of its own: what it says, answers, and how it ends."""

from __future__ import annotations

import json
import signal
import socket
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import psutil
import pytest

from tests.unit.cli.conftest import Icetower
from tests.unit.cli.server.served import PATIENCE_SECONDS, ended, port_in, serving


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_server_says_where_it_is_answers_logs_and_stops(folder: Path, stop: signal.Signals) -> None:
    with serving() as (process, said):
        port = port_in(said)
        answer = httpx.get(f"http://127.0.0.1:{port}/health")
        status, lines, rest = ended(process, stop)

    assert said == [
        f"Icetower listens on http://127.0.0.1:{port} with 1 process; Ctrl+C stops it.",
        f"  database   sqlite:///{folder}/.icetower/icetower.db",
        f"  warehouse  default at file://{folder}/.icetower/warehouse",
    ]
    assert answer.status_code == 200
    assert (status, rest) == (0, "")
    logged = [json.loads(line) for line in lines]
    assert [line["path"] for line in logged if line.get("event") == "request"] == ["/health"]
    assert not [line for line in logged if line["level"] != "info"]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_says_where_its_warehouse_is_and_not_where_the_settings_would_have_it(
    folder: Path, workers: str
) -> None:
    with serving() as (_, said):
        made = said[2]
    with serving("--default-warehouse-location", str(folder / "elsewhere"), "--workers", workers) as (
        _,
        said,
    ):
        again = said[2]

    assert again == made == f"  warehouse  default at file://{folder}/.icetower/warehouse"


@pytest.mark.parametrize("name", ["50% off", "per%20cent", "why?"])
def test_the_database_lies_in_the_working_directory_whatever_that_is_called(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / name).mkdir()
    monkeypatch.chdir(folder / name)

    # No warehouse is made below a folder with a question mark in its name.
    with serving("--default-warehouse-location", str(folder / "lake")) as (_, said):
        made = httpx.post(
            f"http://127.0.0.1:{port_in(said)}/v1/namespaces",
            json={"namespace": ["sales"]},
            timeout=PATIENCE_SECONDS,
        )

    assert made.status_code == 200
    assert (folder / name / ".icetower" / "icetower.db").is_file()
    assert {entry.name for entry in folder.iterdir()} - {"lake"} == {name}


def test_the_network_is_warned_about(folder: Path) -> None:
    with serving("--host", "0.0.0.0") as (process, said):
        assert process.stderr is not None
        warning = process.stderr.readline()

    assert f"http://0.0.0.0:{port_in(said)}" in said[0]
    assert warning.startswith("WARNING  There is no authentication, and Icetower listens on 0.0.0.0")


def test_an_age_of_orphans_that_commits_may_outlast_is_warned_about(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ICETOWER_ORPHAN_AGE_HOURS", "0.5")
    with serving() as (process, _):
        assert process.stderr is not None
        warning = process.stderr.readline()

    assert warning.startswith("WARNING  The setting orphan_age_hours is 0.5: ")


def test_a_database_that_does_not_answer_is_told_in_one_line(folder: Path) -> None:
    with serving("--database-url", "postgresql://u:hunter2@127.0.0.1:1/d") as (process, said):
        status = process.wait(PATIENCE_SECONDS)

    assert status == 1
    assert len(said) == 1
    assert said[0].startswith("Error: The database does not answer as it should: ")
    assert "postgresql://u:********@127.0.0.1:1/d: " in said[0]
    assert "Connection refused" in said[0]


def test_a_port_in_use_is_told_in_one_line(bare: Icetower) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        failed = bare("serve", "--port", str(port))

    assert (failed.status, failed.out) == (1, "")
    assert failed.err.startswith(f"Error: Port {port} of 127.0.0.1 is in use")
    assert failed.err.count("\n") == 1


def test_a_port_of_the_management_in_use_is_one_of_that_setting(
    bare: Icetower, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("ICETOWER_MANAGEMENT", f"127.0.0.1:{taken.getsockname()[1]}")
        failed = bare("serve", "--port", "0")

    assert failed.err.endswith("in use by another process. Choose another one for the setting management\n")


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("no.such.host.invalid", "Cannot listen on no.such.host.invalid port 8181: "),
        ("\u202e", "Cannot listen on '\\u202e' port 8181: no host can have this name\n"),
        ("a" * 300, f"Cannot listen on '{'a' * 100}' port 8181: no host can have this name\n"),
    ],
)
def test_a_host_that_there_is_not_is_told_in_one_line(host: str, told: str, bare: Icetower) -> None:
    failed = bare("serve", "--host", host)

    assert failed.status == 1
    assert failed.err.startswith(f"Error: {told}")


def test_a_setting_that_makes_no_sense_is_wrong_usage(bare: Icetower) -> None:
    refused = bare("serve", "--workers", "0")

    assert refused.status == 2
    assert refused.err.startswith("Error: Invalid setting workers (--workers): ")


@pytest.mark.parametrize(
    ("setting", "value"), [("default_warehouse", "a/b"), ("default_warehouse_location", "ftp://lake")]
)
def test_a_default_warehouse_that_cannot_be_is_wrong_usage(
    folder: Path, setting: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"ICETOWER_{setting.upper()}", value)

    with serving("--workers", "2") as (process, said):
        status = process.wait(PATIENCE_SECONDS)

    assert status == 2
    assert said[0].startswith(f"Error: Invalid setting {setting}: ")


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("what", ["database", "warehouse"])
def test_what_cannot_be_written_is_told_before_the_server_listens(
    bare: Icetower, folder: Path, what: str, workers: str
) -> None:
    assert bare("migrate").status == 0
    options = ["--workers", workers]
    if what == "database":
        with serving():
            pass
        options += ["--database-url", f"sqlite:///file:{folder}/.icetower/icetower.db?mode=ro&uri=true"]
    else:
        (folder / "a file").touch()
        options += ["--default-warehouse-location", "a file"]

    with serving(*options) as (_, said):
        pass

    assert said[0].startswith("WARNING  Nothing can be changed here, and /ready is answered 503: ")
    assert ("the file is read-only" if what == "database" else f"{folder}/a file") in said[0]
    assert said[1].startswith("Icetower listens on ")


def test_the_management_api_can_be_switched_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICETOWER_MANAGEMENT", "off")
    with serving() as (_, said):
        uri = f"http://127.0.0.1:{port_in(said)}"
        answers = [
            httpx.get(f"{uri}/management/v1/warehouses"),
            httpx.post(f"{uri}/management/v1/warehouses", json={}),
            httpx.get(f"{uri}/management/v1/nothing"),
        ]
        served = httpx.get(f"{uri}/v1/config")

    assert [answer.status_code for answer in answers] == [404] * 3
    assert {answer.json()["error"]["message"] for answer in answers} == {
        "The management API is switched off by the setting management"
    }
    assert served.status_code == 200
    assert "  management off" in said


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_the_management_api_can_have_an_address_of_its_own(
    bare: Icetower, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    monkeypatch.setenv("ICETOWER_MANAGEMENT", "127.0.0.1:0")
    with serving("--host", "0.0.0.0", "--workers", workers) as (_, said):
        catalog = f"http://127.0.0.1:{port_in(said)}"
        address = next(line for line in said if line.startswith("  management ")).split()[1]
        refused = [httpx.get(f"{catalog}/management/v1/warehouses", timeout=60) for _ in range(4)]
        rebound = httpx.get(f"http://{address}/management/v1/warehouses", headers={"Host": "evil.example"})
        listed = bare("warehouse", "list", "--uri", f"http://{address}")
        failed = bare("warehouse", "list", "--uri", catalog)
        both = [httpx.get(f"{uri}/v1/namespaces", timeout=60) for uri in (catalog, f"http://{address}")]

    assert {answer.status_code for answer in refused} == {404}
    assert rebound.status_code == 403
    assert listed.status == 0
    assert "default" in listed.out
    assert "The management API has an address of its own" in failed.err
    assert {answer.status_code for answer in both} == {200}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the limits of other processes")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_servers_take_the_file_descriptors_that_they_may_have(folder: Path, workers: str) -> None:
    few = "import resource, runpy; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 1500)); "
    run = few + "runpy.run_module('app.cli', run_name='__main__')"
    with serving("--workers", workers, command=(sys.executable, "-c", run)) as (process, said):
        httpx.get(f"http://127.0.0.1:{port_in(said)}/health", timeout=60)
        started = psutil.Process(process.pid)
        limits = {each.rlimit(psutil.RLIMIT_NOFILE) for each in (started, *started.children())}

    assert limits == {(1500, 1500)}


@pytest.mark.slow
def test_idle_connections_do_not_use_up_the_file_descriptors(folder: Path) -> None:
    limit = "resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))"
    few = f"import resource, runpy; {limit}; runpy.run_module('app.cli', run_name='__main__')"
    with serving(command=(sys.executable, "-c", few)) as (_, said), ExitStack() as stack:
        port = port_in(said)
        for _ in range(400):
            stack.enter_context(closing(socket.create_connection(("127.0.0.1", port))))
        health = httpx.get(f"http://127.0.0.1:{port}/health")
        made = httpx.post(f"http://127.0.0.1:{port}/v1/namespaces", json={"namespace": ["a"]})

    assert (health.status_code, made.status_code) == (200, 200)
