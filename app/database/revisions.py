"""The database's revision: what it is, what this build needs, and the migrations between the two."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

import app
from app.database.connection import Database
from app.errors import DatabaseBehind

# Beside the app package: at the root of a checkout, in site-packages when installed.
MIGRATIONS = Path(app.__file__).parent.parent / "migrations"


def known_revision() -> str:
    """Return the revision that this build needs: the newest of its migrations."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None
    return head


def found_revision(database: Database) -> str | None:
    """Return the revision of the database, or nothing if it has none."""
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
        DatabaseUnavailable: nothing was changed.
        CommitStateUnknown: the reply to COMMIT was lost; running it again is safe.
    """
    database.write(lambda connection: command.upgrade(_config(connection), revision))


def downgrade(database: Database, revision: str) -> None:
    """Bring the database back to an older revision, or to "base", which has no tables at all.

    Raises:
        DatabaseUnavailable: nothing was changed.
        CommitStateUnknown: the reply to COMMIT was lost; running it again is safe.
    """
    database.write(lambda connection: command.downgrade(_config(connection), revision))


def write_revision(database: Database, message: str, revision: str) -> Path:
    """Write the migration from an up-to-date database to the tables of `rows.py`, for a person to read over."""
    script = database.read_locked(
        lambda connection: command.revision(_config(connection), message, autogenerate=True, rev_id=revision)
    )
    assert script is not None
    assert not isinstance(script, list)
    return Path(script.path)


def _all_revisions() -> set[str]:
    return {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.set_main_option("file_template", "%%(rev)s_%%(slug)s")
    config.attributes["connection"] = connection
    return config
