"""The database's revision, the one this build needs, and the migrations between them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Lock

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection

import app
from app.database.connections.database import Database
from app.errors import DatabaseBehind

# Alembic hands its context to `env.py` in a global variable.
_alembic_is_free = Lock()

# Beside the app package: at the root of a checkout, in site-packages when installed.
MIGRATIONS = Path(app.__file__).parent.parent / "migrations"


def known_revision() -> str:
    """Return the revision that this build needs: the newest of its migrations."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None
    return head


def found_revision(database: Database) -> str | None:
    """Return the revision of the database; None if it has none."""
    heads = database.read(lambda connection: MigrationContext.configure(connection).get_current_heads())
    return ", ".join(heads) or None


def check_revision(database: Database) -> None:
    """Refuse to work on a database with other tables than this build knows.

    Raises:
        DatabaseBehind: the revision found is not the known one.
        DatabaseUnavailable: the database does not answer.
    """
    found, known = found_revision(database), known_revision()
    if found == known:
        return
    if found is None or found in _all_revisions():
        raise DatabaseBehind(
            f"The database is at revision {found or 'none'}, expected {known}; run `icetower migrate`"
        )
    raise DatabaseBehind(
        f"The database is at revision {found}, which this build does not know; it knows up to {known}. "
        "Run a newer build of Icetower"
    )


def migrate(database: Database, revision: str = "head") -> None:
    """Bring the database up to a revision; all of it happens or nothing does.

    Raises:
        DatabaseBehind: this build does not know the revision, or the one that the database is at.
        DatabaseUnavailable: nothing was changed.
        CommitStateUnknown: the reply to COMMIT was lost; running it again is safe.
    """
    _run(database, command.upgrade, revision)


def downgrade(database: Database, revision: str) -> None:
    """Bring the database back to an older revision, or to "base"; raises like `migrate`."""
    _run(database, command.downgrade, revision)


def _run(database: Database, run: Callable[[Config, str], None], revision: str) -> None:
    try:
        with _alembic_is_free:
            database.write(lambda connection: run(_config(connection), revision))
    except CommandError as error:
        raise DatabaseBehind(f"Cannot migrate to revision {revision}: {error}") from error


def _all_revisions() -> set[str]:
    return {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config
