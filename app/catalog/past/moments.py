"""Whether a moment of the past can be shown."""

from __future__ import annotations

from app.catalog.context.past.moments import moment_ms
from app.catalog.context.server import Server
from app.engine.model.data_types.moments import moment_text
from app.recoveries import InvalidMoment


def check_moment(server: Server, text: str) -> int:
    """Return a moment in epoch milliseconds, if history reaches back so far.

    Args:
        server: whose history it is.
        text: as `moment_ms` takes it.

    Raises:
        InvalidMoment: it is not a time, lies in the future, or before the events that are kept.
    """
    now_ms, kept_ms = server.now_ms(), server.rules.history_ms
    found = moment_ms(text, now_ms)
    if kept_ms and found < now_ms - kept_ms:
        raise InvalidMoment(
            f"Invalid time {text[:100]!r}: it is {moment_text(found)}, and history is kept since "
            f"{moment_text(now_ms - kept_ms)}; the setting history_days says for how long"
        )
    return found
