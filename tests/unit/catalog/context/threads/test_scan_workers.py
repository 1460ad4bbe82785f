"""Threads that plan scans in the background."""

from __future__ import annotations

import threading

import pytest

from app.catalog.context.threads.scan_workers import AT_MOST, ScanWorkers
from app.errors import Unavailable


def test_where_no_thread_can_be_started_no_place_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    workers, is_done = ScanWorkers(), threading.Event()

    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", start)
        for _ in range(AT_MOST):
            with pytest.raises(Unavailable, match="can't start new thread"):
                workers.start("lake", is_done.set, lambda: True)

    workers.start("lake", is_done.set, lambda: True)

    assert is_done.wait(60)
    workers.stop()
