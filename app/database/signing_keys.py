"""Keys that all servers on one database sign with. The first server that needs one makes it."""

from __future__ import annotations

import secrets

from sqlalchemy import select

from app.database.connections.database import Database
from app.database.schema.rows import signing_keys as rows
from app.database.statements.inserts import OnEachDatabase

_INSERT = OnEachDatabase(rows, lambda insert: insert.on_conflict_do_nothing())


class SigningKeys:
    """Secrets by name; they never change, so each is read once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: dict[str, bytes] = {}

    def find_or_create(self, name: str, size_bytes: int, now_ms: int) -> bytes:
        """Return the secret of this name; if there is none yet, make one of this size.

        If several servers do this at the same time, one wins and all return its secret.
        """
        kept = self._kept.get(name)
        if kept is not None:
            return kept
        query = select(rows.c.secret).where(rows.c.name == name)
        found = self._database.read(lambda connection: connection.scalars(query).one_or_none())
        if found is None:
            values = {"name": name, "secret": secrets.token_hex(size_bytes), "created_ms": now_ms}
            statement = _INSERT[self._database.dialect_name]
            self._database.write(lambda connection: connection.execute(statement, values))
            found = self._database.read(lambda connection: connection.scalars(query).one())
        secret = self._kept[name] = bytes.fromhex(found)
        return secret
