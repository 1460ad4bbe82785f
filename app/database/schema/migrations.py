"""The migrations between revisions of the database, run by Alembic."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection

from app.database.connections.database import Database
from app.database.connections.dialects import unhurried
from app.database.schema.revisions import MIGRATIONS, check_known_revision
from app.errors import DatabaseBehind

# Alembic hands its context to `env.py` in a global variable.
_alembic_is_free = Lock()


def migrate(database: Database, revision: str = "head") -> str | None:
    """Bring the database up to a revision and return the one before: all of it or nothing.

    Raises:
        DatabaseBehind: this build does not know the revision, or the one that the database is at.
        DatabaseUnavailable: nothing was changed.
        CommitStateUnknown: the reply to COMMIT was lost; running it again is safe.
    """
    return _run(database, command.upgrade, revision)


def downgrade(database: Database, revision: str) -> str | None:
    """Bring the database back to an older revision, or to "base"; raises like `migrate`."""
    return _run(database, command.downgrade, revision)


def _run(database: Database, run: Callable[[Config, str], None], revision: str) -> str | None:
    check_known_revision(database)
    database.keep_to_revision(None)
    try:
        with _alembic_is_free:
            return database.write(lambda connection: _run_on(connection, run, revision))
    except CommandError as error:
        raise DatabaseBehind(f"Cannot migrate to revision {revision}: {error}") from error


def _run_on(connection: Connection, run: Callable[[Config, str], None], revision: str) -> str | None:
    config = _config(connection)
    with unhurried(connection):
        run(config, revision)
    found: str | None = config.attributes["found"]
    return found


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config
