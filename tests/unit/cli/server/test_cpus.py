"""A CPU for each server process."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import httpx
import psutil
import pytest
import typer

from app.cli.server.cpus import Cpus
from tests.e2e.patience import wait_until
from tests.unit.cli.conftest import Icetower
from tests.unit.cli.server.served import PATIENCE_SECONDS, port_in, serving

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity"), reason="only Linux keeps processes on CPUs"
)
TWO = pytest.mark.skipif(
    len(getattr(os, "sched_getaffinity", lambda _: ())(0)) < 2, reason="this machine lets us use one CPU only"
)


def cpus_of(process: psutil.Process) -> set[int]:
    return set(process.cpu_affinity())


@TWO
@pytest.mark.slow
def test_each_process_has_a_cpu_and_one_that_replaces_another_takes_its_cpu(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ICETOWER_PIN_WORKERS", "true")
    with serving("--workers", "2") as (process, said):
        uri = f"http://127.0.0.1:{port_in(said)}"
        parent = psutil.Process(process.pid)

        def have_one_each() -> bool:
            taken = [cpus_of(worker) for worker in parent.children()]
            return len(taken) == 2 and all(len(each) == 1 for each in taken) and taken[0] != taken[1]

        wait_until(have_one_each)
        for worker in parent.children():
            worker.send_signal(signal.SIGKILL)
            psutil.wait_procs([worker], timeout=PATIENCE_SECONDS)
            wait_until(have_one_each)
        answer = httpx.get(f"{uri}/health", timeout=PATIENCE_SECONDS)
        own = cpus_of(parent)

    assert answer.status_code == 200
    assert len(own) > 1, "only those who serve are kept on one CPU"


def test_one_process_takes_the_first_cpu_that_is_free(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICETOWER_PIN_WORKERS", "true")
    with serving() as (process, said):
        answer = httpx.get(f"http://127.0.0.1:{port_in(said)}/health", timeout=PATIENCE_SECONDS)
        taken = cpus_of(psutil.Process(process.pid))

    assert answer.status_code == 200
    assert taken == {min(os.sched_getaffinity(0))}


def test_more_processes_than_cpus_are_refused_in_one_line(
    bare: Icetower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ICETOWER_PIN_WORKERS", "true")
    failed = bare("serve", "--port", "0", "--workers", "256")

    assert (failed.status, failed.out) == (1, "")
    there = len(os.sched_getaffinity(0))
    assert failed.err == (
        f"Error: pin_workers: 256 server processes cannot have a CPU each: {there} are there\n"
    )


def test_other_systems_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")

    with pytest.raises(typer.Exit):
        Cpus(1)

    assert "only on Linux" in capsys.readouterr().err
