"""The database's revision, and the one that this build needs."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy import inspect, text

import app
from app.database.connections.database import Database
from app.errors import DatabaseBehind

# Beside the app package: at the root of a checkout, in site-packages when installed.
MIGRATIONS = Path(app.__file__).parent.parent / "migrations"
_FILE = re.compile(r"(\d{4})_\w+\.py")
_REVISIONS = text("SELECT version_num FROM alembic_version")


def known_revision() -> str:
    """Return the revision that this build needs: the newest of its migrations."""
    return max(_known_revisions())


def found_revision(database: Database) -> str | None:
    """Return the revision of the database; None if it has none."""
    if not database.read(lambda connection: inspect(connection).has_table("alembic_version")):
        return None
    return ", ".join(sorted(database.read(lambda connection: connection.scalars(_REVISIONS).all()))) or None


def check_revision(database: Database) -> None:
    """Refuse to work on a database with other tables than this build knows, now and later.

    Raises:
        DatabaseBehind: the revision found is not the known one.
        DatabaseUnavailable: the database does not answer.
    """
    found, known = check_known_revision(database), known_revision()
    if found != known:
        raise DatabaseBehind(
            f"The database is at revision {found or 'none'}, expected {known}; run `icetower migrate`"
        )
    database.keep_to_revision(known)


def check_known_revision(database: Database) -> str | None:
    """Return the database's revision, or None; one that this build does not know is refused.

    Raises:
        DatabaseBehind: this build does not know the revision.
        DatabaseUnavailable: the database does not answer.
    """
    found = found_revision(database)
    if found is not None and found not in _known_revisions():
        raise DatabaseBehind(
            f"The database is at revision {found}, which this build does not know; it knows up to {known_revision()}. "
            "Run a newer build of Icetower"
        )
    return found


def _known_revisions() -> set[str]:
    # Read off the names of the files: Alembic takes as long to import as a start should take in all.
    names = (_FILE.fullmatch(path.name) for path in (MIGRATIONS / "versions").iterdir())
    return {name[1] for name in names if name is not None}
