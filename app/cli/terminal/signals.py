"""Signals that end a command: it is to tidy up first, as after Ctrl+C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """Let SIGTERM and a closed terminal do what Ctrl+C does, until the block ends.

    What is ignored stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread is given signals.
        return
    replaced = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in replaced:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)
