"""`icetower serve` with several processes: they share a port, and are replaced and ended."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import pytest

from tests.builders.databases import migrated
from tests.e2e.patience import wait_until
from tests.servers.postgres import PostgresServer
from tests.unit.cli.server.served import (
    PATIENCE_SECONDS,
    ROOT,
    answers,
    ended,
    port_in,
    serving,
    wait_for_both,
)

IN_MEMORY = Path("/dev/shm")


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
