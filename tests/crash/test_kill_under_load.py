"""A server killed at random while many clients commit: every acknowledged commit is there exactly once."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import httpx
import pytest

from tests.crash.crashes import Client, CrashingServer, check_table
from tests.servers.modes import MODES

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("mode", MODES, indirect=True)]
WRITERS = 8
TABLES = ("a", "b", "c")
ROUNDS = 4


def test_no_acknowledged_commit_is_lost_when_the_server_is_killed(server: CrashingServer) -> None:
    chance = random.Random(20_13)
    setup = Client(server.url)
    for name in TABLES:
        setup.make_table(name)
    acknowledged: dict[str, set[str]] = {name: set() for name in TABLES}
    attempted: dict[str, set[str]] = {name: set() for name in TABLES}
    lock = threading.Lock()

    def write(writer: int, round_: int) -> None:
        client = Client(server.url, timeout_s=10)
        for number in range(10_000):
            name = TABLES[(writer + number) % len(TABLES)]
            mark = f"mark-{round_}-{writer}-{number}"
            with lock:
                attempted[name].add(mark)
            try:
                answer = client.commit(name, mark)
            except httpx.TransportError:
                return
            assert answer.status_code in (200, 409, 500, 503), answer.text
            if answer.status_code == 200:
                with lock:
                    acknowledged[name].add(mark)
            if answer.status_code == 409:
                # A refusal is a promise that it did not happen.
                with lock:
                    attempted[name].discard(mark)

    for round_ in range(ROUNDS):
        with ThreadPoolExecutor(WRITERS) as pool:
            writers = [pool.submit(write, writer, round_) for writer in range(WRITERS)]
            while min(map(len, acknowledged.values())) < 2 * round_ + 2 and not any(
                map(Future.done, writers)
            ):
                time.sleep(0.01)  # On a busy machine the first commits take their time.
            threading.Event().wait(chance.uniform(0.3, 1.5))
            server.kill()
            for future in writers:
                future.result()
        server.start()
        for name in TABLES:
            check_table(setup.load(name), acknowledged[name], attempted[name])

    assert all(len(marks) > ROUNDS for marks in acknowledged.values())
