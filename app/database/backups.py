"""Backups of SQLite databases: a copy of one state, made while servers go on."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from uuid import uuid4

from app.database.connections.sqlite_files import check_log, sqlite_file
from app.errors import DatabaseUnavailable, InvalidSetting
from app.fileio.syncs import sync

_PARTIAL = ".icetower-part"
_BROKEN_OFF_AFTER_S = 3600.0
_PRIMARY_CODE = 0xFF
"""What SQLite's codes of errors have in common that are of one kind."""


def back_up(url: str, target: Path) -> int:
    """Copy a SQLite database to a new file, and return its size in bytes.

    The copy is complete, checked and durable before it has its name: a file of this name is always a good copy.

    Raises:
        InvalidSetting: it is not a SQLite database in a file, the new file's name is taken, or none can have it.
        DatabaseUnavailable: there is no such database, it cannot be read, or the copy cannot be written or is damaged.
    """
    source = _path_of(url)
    try:
        is_taken = target.exists() or target.is_symlink()
    except OSError as error:
        raise InvalidSetting(f"{str(target)[:200]} cannot be a file: {error.strerror}") from error
    if is_taken:
        raise InvalidSetting(f"{target} is there already; a backup never replaces a file")
    if not source.is_file():
        raise DatabaseUnavailable(f"There is no database at {source}")
    if f"{target.absolute()}".startswith(f"{source.absolute()}-"):
        raise InvalidSetting(
            f"{target} is a name for what SQLite and servers keep beside the database, such as its log: they would "
            "take the copy for it. Give it another one"
        )
    if not target.absolute().parent.is_dir():
        raise DatabaseUnavailable(f"Cannot copy {source} to {target}: there is no folder {target.parent}")
    _forget_broken_off(target.absolute().parent)
    partial = target.with_name(f".{target.name}.{uuid4().hex}{_PARTIAL}")
    try:
        check_log(source)
        # SQLite does not say whether it is this file or the source that it cannot open.
        partial.touch()
        _copy(source, partial)
        _sync(partial)
        try:
            # Unlike a rename, a link fails if somebody else was faster.
            os.link(partial, target)
        except FileExistsError as error:
            raise InvalidSetting(f"{target} is there already; a backup never replaces a file") from error
        _sync(target.absolute().parent)
    except (sqlite3.Error, OSError) as error:
        # The name of the partial file says nothing to a person.
        is_of_partial = isinstance(error, OSError) and str(error.filename) == f"{partial}"
        reason = getattr(error, "strerror", None) if is_of_partial else error
        raise DatabaseUnavailable(f"Cannot copy {source} to {target}: {reason}") from error
    finally:
        for left in (partial, Path(f"{partial}-journal")):
            with suppress(OSError):
                left.unlink(missing_ok=True)
    return target.stat().st_size


def _forget_broken_off(folder: Path) -> None:
    """Delete what backups left that were killed: nothing has written to it for long."""
    with suppress(OSError):
        for left in [*folder.glob(f".*{_PARTIAL}"), *folder.glob(f".*{_PARTIAL}-journal")]:
            with suppress(OSError):
                if time.time() - left.stat().st_mtime > _BROKEN_OFF_AFTER_S:
                    left.unlink()


def _path_of(url: str) -> Path:
    if not url.startswith("sqlite"):
        raise InvalidSetting(
            "Only SQLite databases are copied by this command; save a Postgres database with pg_dump"
        )
    file = sqlite_file(url)
    if file is None:
        raise InvalidSetting("The database is not a file, so there is nothing to copy")
    return file


def _copy(source: Path, target: Path) -> None:
    """Copy all pages in one step: writers go on meanwhile, and the copy is one state."""
    with closing(_opened(source)) as reading, closing(sqlite3.connect(target)) as writing:
        reading.backup(writing)
        # A single file, without the log beside it that WAL needs; the next server turns it on again.
        writing.execute("PRAGMA journal_mode = DELETE")
        found = writing.execute("PRAGMA integrity_check").fetchone()
        if found != ("ok",):
            raise DatabaseUnavailable(f"The copy of {source} is damaged: {found}")


def _opened(source: Path) -> sqlite3.Connection:
    """Open a database to read it, also where nothing can be written beside it.

    So it is on a mount for reading only.
    """
    uri = f"{source.absolute().as_uri()}?mode=ro"
    opened = sqlite3.connect(uri, uri=True, timeout=30)
    try:
        opened.execute("PRAGMA schema_version").fetchone()
        return opened
    except sqlite3.Error as error:
        opened.close()
        if error.sqlite_errorcode & _PRIMARY_CODE != sqlite3.SQLITE_CANTOPEN:
            raise
        log = Path(f"{source}-wal")
        if log.exists() and log.stat().st_size:
            raise DatabaseUnavailable(
                f"Cannot copy {source}: SQLite can write nothing beside it, and needs that to read the commits in "
                f"{log}. Copy both files to a folder that can be written to, and back up the copy"
            ) from error
    # All of it is in the one file. No server is at work on it: that would have a log.
    return sqlite3.connect(f"{uri}&immutable=1", uri=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)
