"""Side writes: some in threads of their own, the rest in the thread that asks."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from app.catalog.context.threads.side_work import SideWork
from app.errors import FilesUnavailable


def test_who_finds_all_threads_busy_writes_itself() -> None:
    writes, may_end = SideWork(1), threading.Event()
    threads: list[threading.Thread] = []

    def note() -> None:
        threads.append(threading.current_thread())

    def hang() -> None:
        may_end.wait()
        note()

    hanging = writes.start(hang)
    writes.start(note).result()
    may_end.set()
    hanging.result()
    writes.start(note).result()

    assert threads[0] is threading.current_thread()
    assert threading.current_thread() not in threads[1:]


def test_what_can_be_left_out_is_not_begun_while_all_threads_are_busy() -> None:
    side_work, may_end = SideWork(1), threading.Event()
    begun: list[str] = []
    hanging = side_work.start_if_free(lambda: (may_end.wait(), None)[1])
    assert hanging is not None

    assert side_work.start_if_free(lambda: begun.append("too much")) is None
    may_end.set()
    hanging.result()
    side_work.start(lambda: begun.append("later")).result()

    assert begun == ["later"]


def test_who_gets_no_thread_works_itself_and_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    side_work = SideWork(2)
    done: list[str] = []

    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", start)
        for _ in range(3):
            side_work.start(lambda: done.append("itself")).result()
            assert side_work.start_if_free(lambda: done.append("left out")) is None

    for _ in range(2):
        side_work.start(lambda: done.append("in a thread")).result()

    assert done == ["itself"] * 3 + ["in a thread"] * 2


@pytest.mark.parametrize("busy", [False, True])
def test_error_is_raised_when_the_future_is_asked(busy: bool) -> None:
    writes, may_end = SideWork(1), threading.Event()

    def hang() -> None:
        may_end.wait()

    def fail() -> None:
        raise FilesUnavailable("the store is gone")

    if busy:
        writes.start(hang)
    failed = writes.start(fail)
    may_end.set()

    with pytest.raises(FilesUnavailable):
        failed.result()
    # A failure frees its thread.
    writes.start(lambda: None).result()


def test_what_failed_work_held_is_let_go_at_once() -> None:
    """It may be a file of many megabytes, and no garbage collection may come for long."""

    class Content:
        pass

    held: list[weakref.ref[Content]] = []

    def fail() -> None:
        content = Content()
        held.append(weakref.ref(content))
        raise FilesUnavailable("broken off")

    side_work, may_end = SideWork(1), threading.Event()
    hanging = side_work.start(lambda: (may_end.wait(), None)[1])
    gc.disable()
    try:
        failed = side_work.start(fail)
        assert isinstance(failed.exception(), FilesUnavailable)
        del failed
        assert held[0]() is None
    finally:
        gc.enable()
        may_end.set()
        hanging.result()
