"""Answers go out in one piece, and nothing of them is lost or stays behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from app.cli.server.lingering import LingeringTransport

HEAD, BODY = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n", b"{}"


class Recording(asyncio.Transport):
    """Notes what is called, in order; what goes out together is one entry."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[bytes | str] = []

    def write(self, data: Any) -> None:
        self.calls.append(bytes(data))

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.calls.append(b"".join(list_of_data))

    def write_eof(self) -> None:
        self.calls.append("eof")

    def can_write_eof(self) -> bool:
        return True

    def resume_reading(self) -> None:
        self.calls.append("read on")

    def is_closing(self) -> bool:
        return "close" in self.calls

    def close(self) -> None:
        self.calls.append("close")

    def abort(self) -> None:
        self.calls.append("abort")


def calls_of(
    *steps: Callable[[LingeringTransport], object] | None, is_coming: bool = False
) -> list[bytes | str]:
    """Return what reaches the socket; None is the end of the event loop's turn."""

    async def run() -> list[bytes | str]:
        found = Recording()
        transport = LingeringTransport(found, lambda: is_coming, lambda: None)
        for step in (*steps, None):
            if step is None:
                turn_ends = asyncio.get_running_loop().create_future()
                asyncio.get_running_loop().call_soon(turn_ends.set_result, None)
                await turn_ends
            else:
                step(transport)
        calls = list(found.calls)
        transport.abort()
        return calls

    return asyncio.run(run())


def writes(data: bytes) -> Callable[[LingeringTransport], None]:
    return lambda transport: transport.write(data)


def closes(transport: LingeringTransport) -> None:
    transport.close()


def test_head_and_body_go_out_together() -> None:
    assert calls_of(writes(HEAD), writes(BODY)) == [HEAD + BODY]


def test_head_alone_goes_out_at_the_end_of_the_turn() -> None:
    assert calls_of(writes(HEAD), None, writes(BODY)) == [HEAD, BODY]
    assert calls_of(writes(HEAD)) == [HEAD]


def test_answers_that_follow_each_other_keep_their_order() -> None:
    steps = [writes(HEAD), writes(BODY), writes(BODY), writes(HEAD), writes(HEAD), None, writes(BODY)]

    assert b"".join(item for item in calls_of(*steps) if isinstance(item, bytes)) == (
        HEAD + BODY + BODY + HEAD + HEAD + BODY
    )


@pytest.mark.parametrize("is_coming", [False, True])
def test_head_goes_out_before_the_end(is_coming: bool) -> None:
    calls = calls_of(writes(HEAD), closes, writes(BODY), is_coming=is_coming)

    assert calls == ([HEAD, "eof", "read on"] if is_coming else [HEAD, "close"])


def test_nothing_goes_out_after_the_end() -> None:
    assert calls_of(closes, writes(HEAD), None, writes(BODY)) == ["close"]
    assert calls_of(writes(HEAD), lambda transport: transport.abort(), None) == ["abort"]
