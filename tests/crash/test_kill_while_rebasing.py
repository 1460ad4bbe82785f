"""A server killed while it rebases appends: each is in the table once, or not at all, and may be sent again."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.builders.http_appends import Appender, Sent, check_line, make_rebasing_table
from tests.crash.crashes import CrashingServer

pytestmark = pytest.mark.slow
WRITERS = 4
ROUNDS = 3


@pytest.mark.parametrize(
    ("step", "lands"),
    [("before_write", False), ("after_write", False), ("before_put", False), ("after_put", True)],
)
def test_rebase_cut_off_by_a_kill_landed_wholly_or_not_at_all(
    server: CrashingServer, step: str, lands: bool
) -> None:
    make_rebasing_table(server.url, "t")
    client, rival = Appender(server.url, 1), Appender(server.url, 2)
    empty = client.load("t")
    first = rival.prepare("t", empty)
    late = client.prepare("t", empty)
    assert rival.send(first).status_code == 200
    server.arm(step)

    with pytest.raises(httpx.TransportError):
        client.send(late)
    assert server.wait_until_dead() != 0
    server.start()

    assert (late.file_path in client.live_files("t")) is lands
    assert client.send(late).status_code == 200
    assert sorted(client.live_files("t")) == sorted([first.file_path, late.file_path])
    check_line(client.load("t"))


def test_appends_under_kills_land_once_however_often_they_are_sent(server: CrashingServer) -> None:
    chance = random.Random(9)
    make_rebasing_table(server.url, "t")
    clients = [Appender(server.url, number + 1, timeout_s=10) for number in range(WRITERS)]
    empty = clients[0].load("t")
    acknowledged: list[Sent] = []
    unknown: list[Sent] = []
    lock = threading.Lock()

    def write(client: Appender) -> None:
        while True:
            sent = client.prepare("t", empty)
            try:
                status = client.send(sent).status_code
            except httpx.TransportError:
                with lock:
                    unknown.append(sent)
                return
            # With rebases nothing is refused; 500 says that the outcome is not known.
            assert status in (200, 500, 503)
            with lock:
                (acknowledged if status == 200 else unknown).append(sent)

    for _ in range(ROUNDS):
        with ThreadPoolExecutor(WRITERS) as pool:
            writers = [pool.submit(write, client) for client in clients]
            threading.Event().wait(chance.uniform(0.3, 1.0))
            server.kill()
            for future in writers:
                future.result()
        server.start()
        found = clients[0].live_files("t")
        assert len(found) == len(set(found))
        assert {item.file_path for item in acknowledged} <= set(found)
        for item in unknown:
            assert clients[0].send(item).status_code == 200
        acknowledged += unknown
        unknown.clear()
        assert sorted(clients[0].live_files("t")) == sorted(item.file_path for item in acknowledged)

    check_line(clients[0].load("t"))
    assert len(acknowledged) > WRITERS * ROUNDS
