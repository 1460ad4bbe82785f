"""`icetower serve`, mostly in a process of its own: what it says, answers, and how it ends."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import pytest

from tests.builders.databases import migrated
from tests.e2e.patience import wait_until
from tests.servers.postgres import PostgresServer
from tests.unit.cli.conftest import Icetower

ROOT = Path(__file__).parents[4]
ADDRESS = re.compile(r"http://\S+:(\d+)")
PATIENCE_SECONDS = 60
IN_MEMORY = Path("/dev/shm")


@contextmanager
def serving(
    *options: str, command: Sequence[str] = (sys.executable, "-m", "app.cli")
) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """Run `icetower serve` in the working directory and hand out the process and what it said at the start."""
    process = subprocess.Popen(
        [*command, "serve", "--port", "0", *options],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        said: list[str] = []
        for line in process.stderr:
            said.append(line.rstrip("\n"))
            if line.startswith("  warehouse"):
                break
        yield process, said
    finally:
        process.kill()
        process.communicate()


def port_in(said: list[str]) -> int:
    address = ADDRESS.search("\n".join(said))
    assert address is not None, said
    return int(address[1])


def ended(process: subprocess.Popen[str], with_signal: signal.Signals) -> tuple[int, list[str], str]:
    """Stop the process and return its status, its log lines, and the rest of what it said."""
    process.send_signal(with_signal)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode, out.splitlines(), err


def connect_until_the_end(process: subprocess.Popen[str], address: tuple[str, int]) -> None:
    while process.poll() is None:
        # One that comes in the moment in which the port is closed is reset.
        with suppress(ConnectionResetError):
            socket.create_connection(address).close()


def successor_of(
    dead: psutil.Process, process: subprocess.Popen[str], other: psutil.Process
) -> psutil.Process:
    """Wait for the worker that takes the place of a dead one."""

    def successors() -> list[psutil.Process]:
        return [child for child in psutil.Process(process.pid).children() if child not in (dead, other)]

    wait_until(lambda: bool(successors()))
    return successors()[0]


@contextmanager
def metrics_folder_of_others() -> Iterator[Path]:
    """A folder as a server leaves it that was killed an hour ago."""
    folder = Path(tempfile.mkdtemp(prefix="icetower-metrics-", dir=IN_MEMORY))
    (folder / "counter_1.db").write_bytes(b"")
    os.utime(folder, (time.time() - 3600, time.time() - 3600))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def own_folders(mapped: set[Path]) -> set[Path]:
    """Return the folders of the mapped files in which processes count."""
    found = {path.parent for path in mapped if path.name.startswith("counter_")}
    assert found, "each process counts in a file"
    return found


def is_locked(folder: Path) -> bool:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def answers(process: subprocess.Popen[str], url: str) -> list[httpx.Response | None]:
    """Return what each worker answers while the others stand still; None from one that does not listen."""
    workers = psutil.Process(process.pid).children()
    return [_answer_of(worker, set(workers) - {worker}, url) for worker in workers]


def _answer_of(worker: psutil.Process, others: set[psutil.Process], url: str) -> httpx.Response | None:
    with ExitStack() as stack:
        try:
            for other in others:
                other.suspend()
                stack.callback(_resume, other)
            return httpx.get(url, timeout=10) if worker.is_running() else None
        except (httpx.TransportError, psutil.NoSuchProcess):
            return None


def _resume(worker: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        worker.resume()


def wait_for_both(process: subprocess.Popen[str], uri: str) -> None:
    """Wait until there are two workers, and both answer."""
    wait_until(lambda: [answer is not None for answer in answers(process, f"{uri}/health")] == [True] * 2)


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


@pytest.mark.parametrize("name", ["50% off", "per%20cent", "why?"])
def test_the_database_lies_in_the_working_directory_whatever_that_is_called(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / name).mkdir()
    monkeypatch.chdir(folder / name)

    with serving() as (_, said):
        made = httpx.post(
            f"http://127.0.0.1:{port_in(said)}/v1/namespaces",
            json={"namespace": ["sales"]},
            timeout=PATIENCE_SECONDS,
        )

    assert made.status_code == 200
    assert (folder / name / ".icetower" / "icetower.db").is_file()
    assert [entry.name for entry in folder.iterdir()] == [name]


@pytest.mark.slow
def test_several_processes_share_the_port_and_add_up_their_metrics_and_stop_together(folder: Path) -> None:
    with serving("--workers", "2", "--log-level", "warning") as (process, said):
        uri = f"http://127.0.0.1:{port_in(said)}"
        answers = [httpx.get(f"{uri}/v1/namespaces", timeout=PATIENCE_SECONDS) for _ in range(20)]
        metrics = httpx.get(f"{uri}/metrics").text
        ids = [httpx.get(f"{uri}/health").headers["x-request-id"] for _ in range(20)]
        own_command = psutil.Process(process.pid).cmdline()
        workers = psutil.Process(process.pid).children(recursive=True)
        commands = [worker.cmdline() for worker in workers]
        status, _, rest = ended(process, signal.SIGTERM)

    assert "with 2 processes" in said[0]
    assert {answer.status_code for answer in answers} == {200}
    counted = re.search(r'icetower_requests_total\{.*route="/v1/\{prefix\}/namespaces".*\} (\S+)', metrics)
    assert counted is not None
    assert float(counted[1]) == 20
    assert len(set(ids)) == 20, "a forked process must not number its requests like the first one"
    if sys.platform == "linux":
        assert commands == [own_command] * 2, "they are forked, and share the memory of the first"
    assert (status, rest) == (0, "")
    assert psutil.wait_procs(workers, timeout=PATIENCE_SECONDS)[1] == []


@pytest.mark.slow
@pytest.mark.skipif(not IN_MEMORY.is_dir(), reason="files in memory are a matter of Linux")
def test_metrics_of_several_processes_lie_in_memory_where_no_full_disk_ends_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(folder))
    with metrics_folder_of_others() as left, metrics_folder_of_others() as held:
        descriptor = os.open(held, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with serving("--workers", "2") as (process, said):
            assert httpx.get(f"http://127.0.0.1:{port_in(said)}/health", timeout=PATIENCE_SECONDS).is_success
            workers = psutil.Process(process.pid).children()
            own = own_folders({Path(part.path) for worker in workers for part in worker.memory_maps()})
            assert all(is_locked(each) for each in own), "else another server deletes it"
            status = ended(process, signal.SIGTERM)[0]
        os.close(descriptor)

        assert {each.parent for each in own} == {IN_MEMORY}
        assert (status, [each for each in own if each.exists()]) == (0, [])
        assert (left.exists(), held.exists()) == (False, True)


@pytest.mark.slow
def test_processes_that_stop_take_no_connection_while_a_request_runs(folder: Path) -> None:
    with serving("--workers", "2") as (process, said), ExitStack() as stack:
        address = ("127.0.0.1", port_in(said))
        assert httpx.get(f"http://127.0.0.1:{address[1]}/health", timeout=PATIENCE_SECONDS).is_success
        running = stack.enter_context(socket.create_connection(address))
        running.sendall(
            b"POST /v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b'Content-Length: 24\r\nExpect: 100-continue\r\n\r\n{"namespace": '
        )
        assert running.recv(100).startswith(b"HTTP/1.1 100")
        process.send_signal(signal.SIGTERM)
        with pytest.raises(ConnectionRefusedError):
            connect_until_the_end(process, address)
        running.sendall(b'["sales"]}')
        answer = running.recv(100)

        assert answer.startswith(b"HTTP/1.1 200")
        assert process.wait(PATIENCE_SECONDS) == 0


@pytest.mark.slow
def test_a_process_that_dies_is_replaced_while_another_one_stands_still(folder: Path) -> None:
    with serving("--workers", "2") as (process, said):
        uri = f"http://127.0.0.1:{port_in(said)}"
        wait_for_both(process, uri)
        still, mortal = psutil.Process(process.pid).children()
        still.suspend()
        begun_s = time.monotonic()
        for _ in range(3):
            mortal.kill()
            mortal = successor_of(mortal, process, still)
        lasted_s = time.monotonic() - begun_s
        still.resume()
        status, _, rest = ended(process, signal.SIGTERM)

    assert lasted_s < PATIENCE_SECONDS, "an answer that does not come is not waited for"
    assert (status, rest) == (0, "")


STANDING_STILL = """
import uvicorn
from app.cli.server.workers import Supervisor, share_memory

async def answer(scope, receive, send):
    pass

config = uvicorn.Config(answer, port=0, workers=2, lifespan="off", timeout_worker_healthcheck=1)
share_memory()
Supervisor(config, sockets=[config.bind_socket()]).run()
"""


@pytest.mark.slow
def test_a_process_that_stands_still_does_not_hold_up_the_end() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STANDING_STILL], cwd=ROOT, stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stderr is not None
            said = b""
            while said.count(b"Waiting for application") + said.count(b"Started server process") < 2:
                said += process.stderr.readline()
            still, other = psutil.Process(process.pid).children()
            still.suspend()
            process.send_signal(signal.SIGTERM)

            _, rest = process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            process.kill()

    assert process.returncode == 0
    assert (still.is_running(), other.is_running()) == (False, False)
    assert f"process {still.pid} does not answer".encode() in rest


@pytest.mark.slow
def test_processes_that_are_just_being_started_can_be_stopped(folder: Path) -> None:
    with serving("--workers", "2") as (process, said):
        wait_for_both(process, f"http://127.0.0.1:{port_in(said)}")
        mortal, other = psutil.Process(process.pid).children()
        mortal.kill()
        newcomer = successor_of(mortal, process, other)
        status, _, rest = ended(process, signal.SIGTERM)

    assert (status, rest) == (0, "")
    assert psutil.wait_procs([newcomer, other], timeout=PATIENCE_SECONDS)[1] == []


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.usefixtures("folder")
def test_a_process_that_cannot_start_does_not_end_the_others(own_postgres_server: PostgresServer) -> None:
    url = own_postgres_server.url(own_postgres_server.create_database())
    migrated(url)
    with serving("--workers", "2", "--database-url", url) as (process, said):
        uri = f"http://127.0.0.1:{port_in(said)}"
        wait_for_both(process, uri)
        mortal, other = psutil.Process(process.pid).children()
        own_postgres_server.stop()
        mortal.kill()
        for _ in range(2):
            mortal = successor_of(mortal, process, other)
        ready = httpx.get(f"{uri}/ready", timeout=PATIENCE_SECONDS)
        own_postgres_server.start()
        wait_for_both(process, uri)
        is_kept = other in psutil.Process(process.pid).children()
        status = ended(process, signal.SIGTERM)[0]

    assert ready.status_code == 503
    assert is_kept
    assert status == 0


@pytest.mark.slow
def test_a_process_that_takes_the_place_of_another_waits_for_its_database(folder: Path) -> None:
    database, away = folder / "database", folder / "away"
    options = ("--workers", "2", "--database-url", f"sqlite:///{database}/icetower.db")
    with serving(*options) as (process, said):
        uri = f"http://127.0.0.1:{port_in(said)}"
        wait_for_both(process, uri)
        httpx.post(f"{uri}/v1/namespaces", json={"namespace": ["kept"]}).raise_for_status()
        mortal, other = psutil.Process(process.pid).children()
        database.rename(away)
        mortal.kill()
        for _ in range(2):
            mortal = successor_of(mortal, process, other)
        ready = httpx.get(f"{uri}/ready", timeout=PATIENCE_SECONDS)
        is_made_anew = database.exists()
        away.rename(database)
        wait_for_both(process, uri)
        found = answers(process, f"{uri}/v1/namespaces")

    assert ready.status_code == 503
    assert not is_made_anew
    assert [answer and answer.json()["namespaces"] for answer in found] == [[["kept"]]] * 2


@pytest.mark.slow
def test_processes_do_not_outlive_the_one_that_watches_over_them(folder: Path) -> None:
    with serving("--workers", "2") as (process, said):
        assert httpx.get(f"http://127.0.0.1:{port_in(said)}/health", timeout=PATIENCE_SECONDS).is_success
        workers = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        _, alive = psutil.wait_procs(workers, timeout=PATIENCE_SECONDS)

    assert len(workers) >= 2
    assert alive == []


def test_the_network_is_warned_about(folder: Path) -> None:
    with serving("--host", "0.0.0.0") as (process, said):
        assert process.stderr is not None
        warning = process.stderr.readline()

    assert f"http://0.0.0.0:{port_in(said)}" in said[0]
    assert warning.startswith("WARNING  There is no authentication, and Icetower listens on 0.0.0.0")


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
