"""A circuit: a store that stayed silent is asked again by one call at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

ANSWER_SECONDS: Final = 20.0
"""More than the time-outs of three connections and requests: mostly the library says first what is wrong."""
SILENT_CALLS: Final = 3
"""So many calls in a row without an answer open the circuit."""
FIRST_REST_S: Final = 5.0
LONGEST_REST_S: Final = 300.0


class Circuit:
    """Whether a store may be asked; safe to use from many threads.

    Closed, every call may go. Open, none may until the rest is over; then one goes as a probe. Its answer closes the
    circuit, its silence doubles the rest: each silent call may leave a thread behind that waits for ever.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._silent_calls = 0
        self._rest_s = 0.0
        self._open_until: float | None = None
        self._is_probed = False
        self._reason = ""

    def refusal(self) -> str | None:
        """Return why the store may not be asked now; None lets the caller ask it.

        A caller that may ask must report `answered` or `silent` afterwards: it may be the probe.
        """
        with self._lock:
            if self._open_until is None:
                return None
            left_s = self._open_until - self._clock()
            if left_s <= 0 and not self._is_probed:
                self._is_probed = True
                return None
            again = f"in {max(1, round(left_s))} s" if left_s > 0 else "when one request has found it awake"
            return (
                f"the store has not answered {self._silent_calls} requests in a row (the last one: {self._reason}); "
                f"it is asked again {again}"
            )

    def answered(self) -> None:
        """Note that a call was answered, with whatever."""
        if self._silent_calls or self._open_until is not None:
            with self._lock:
                self._silent_calls, self._rest_s, self._open_until, self._is_probed = 0, 0.0, None, False

    def silent(self, reason: str) -> None:
        """Note that a call got no answer."""
        with self._lock:
            self._silent_calls += 1
            self._reason = reason
            was_open = self._open_until is not None
            if (was_open and self._is_probed) or (not was_open and self._silent_calls >= SILENT_CALLS):
                self._rest_s = min(self._rest_s * 2 or FIRST_REST_S, LONGEST_REST_S)
                self._open_until = self._clock() + self._rest_s
                self._is_probed = False
