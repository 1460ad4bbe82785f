"""Patience: a server that is away for a while is asked again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from app.client.http.failures import CallFailed, CatalogRefused, LoginFailed, NothingSent

T = TypeVar("T")
LONGEST_S: Final = 120.0
FIRST_PAUSE_S: Final = 0.25
LONGEST_PAUSE_S: Final = 5.0
_BUSY: Final = 429


def patiently(call: Callable[[], T]) -> T:
    """Return what a call returns, and make it again while the server is away.

    Args:
        call: what may be done twice.

    Raises:
        CallFailed: the server refuses it, or is away for longer.
    """
    until_s, pause_s = time.monotonic() + LONGEST_S, FIRST_PAUSE_S
    while True:
        try:
            return call()
        except CallFailed as failure:
            if not _is_away(failure) or time.monotonic() + pause_s > until_s:
                raise
        time.sleep(pause_s)
        pause_s = min(pause_s * 2, LONGEST_PAUSE_S)


def _is_away(failure: CallFailed) -> bool:
    if isinstance(failure, CatalogRefused):
        return failure.status >= 500 or failure.status == _BUSY
    return not isinstance(failure, LoginFailed | NothingSent)
