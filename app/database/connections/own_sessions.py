"""Whether each connection to Postgres has a session of its own."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, Engine

from app.errors import InvalidSetting

_LOOKS: Final = 3


def check_own_sessions(one: Engine, other: Engine) -> None:
    """Check that of two connections each has a session of its own, and keeps it.

    What is set for a session, and the statements that the driver prepares there, would be those of others: a server
    would run another statement than the one that it means, and make sessions of other programs read-only.

    Raises:
        InvalidSetting: a pooler hands sessions on after each transaction.
    """
    with one.connect() as first, other.connect() as second:
        second.detach()  # else it would stay open
        seen = [(_process_id(first), _process_id(second)) for _look in range(_LOOKS)]
    if len(set(seen)) > 1 or seen[0][0] == seen[0][1]:
        raise InvalidSetting(
            "Invalid setting database_url: a pooler there gives a session of Postgres to several connections in turn; "
            "let it leave a session to one connection (pgBouncer: pool_mode = session), or connect to Postgres itself"
        )


def _process_id(connection: Connection) -> int:
    return int(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())
