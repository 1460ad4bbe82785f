"""Running `icetower serve` in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import psutil

from tests.e2e.patience import wait_until

ROOT = Path(__file__).parents[4]
ADDRESS = re.compile(r"http://\S+:(\d+)")
PATIENCE_SECONDS = 60


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
