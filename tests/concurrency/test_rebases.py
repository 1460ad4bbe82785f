"""Appenders in two server processes whose table asks for rebases: none is refused, and each lands exactly once."""

from __future__ import annotations

import pytest

from tests.builders.http_appends import Appender, Sent, check_line, make_rebasing_table
from tests.concurrency.writers import at_once

pytestmark = pytest.mark.slow
WRITERS = 8
APPENDS = 4


def test_no_append_is_refused_and_each_lands_once(servers: list[str]) -> None:
    make_rebasing_table(servers[0], "t")
    clients = [Appender(servers[number % len(servers)], number + 1) for number in range(WRITERS)]
    empty = clients[0].load("t")

    def work(number: int) -> list[Sent]:
        client, sent = clients[number], list[Sent]()
        seen = empty
        for turn in range(APPENDS):
            sent.append(client.prepare("t", seen))
            answer = client.send(sent[-1])
            assert answer.status_code == 200, answer.text
            # Every other time it goes on from what it knew before all others.
            seen = client.load("t") if turn % 2 else empty
        return sent

    answered = [item for per_writer in at_once(WRITERS, work) for item in per_writer]

    after = clients[0].load("t")
    check_line(after)
    assert sorted(clients[1].live_files("t")) == sorted(item.file_path for item in answered)
    # A client that lost its answers sends all of them again.
    assert {clients[0].send(item).status_code for item in answered} == {200}
    assert clients[1].load("t") == after
