"""Where the file of a SQLite database lies, its folder, and whether it is still there."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from app.errors import DatabaseUnavailable, InvalidSetting

FileIdentity = tuple[int, int]
"""The number of its device, and that of the file there."""
_WITHOUT_LOG = b"\x01\x01"
"""Bytes 18 and 19 of a database that no log belongs to (https://www.sqlite.org/fileformat.html)."""
_YES = frozenset({"1", "true", "yes", "on", "y", "t"})
"""What SQLAlchemy takes for yes in a URL."""


def sqlite_file(url: str) -> Path | None:
    """Return the file that SQLAlchemy opens for a database URL; None if the URL names none.

    In a URL, a question mark or a percent sign of a path is written `%3F` or `%25`. With `uri=true` SQLite takes the
    path for a URL again (https://www.sqlite.org/uri.html).
    """
    scheme, _, path = url.partition(":///")
    path, _, query = path.partition("?")
    path = unquote(path)
    if path.startswith("file:") and parse_qs(query).get("uri", [""])[0].lower() in _YES:
        path = unquote(urlsplit(path).path)
    if not scheme.startswith("sqlite") or not path or path.startswith(":memory:"):
        return None
    return Path(path)


def found_file(url: str) -> FileIdentity | None:
    """Return which file is there for a database URL, whatever its name; None if there is none."""
    path = sqlite_file(url)
    return None if path is None else _identity(str(path))


def prepare_file(url: str) -> None:
    """Make the folder of a SQLite database, and check what is there of its file.

    It must have one name, and no log of another database beside it.

    SQLite names its log after the file, so of two names each has a log of its own: what is written by one is lost by
    the other. It follows symbolic links to the file itself.

    Raises:
        InvalidSetting: the folder cannot be made, the file is a folder itself, it has another name, or a log
            beside it is not its own.
    """
    file = sqlite_file(url)
    if file is None:
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidSetting(
            f"Cannot make the folder {file.parent} for the database: {error.strerror}"
        ) from error
    with suppress(OSError):  # not there yet, or opening it says why it cannot be used
        if file.is_dir():
            raise InvalidSetting(f"The database {file} is a folder; name a file in it")
        names = file.stat().st_nlink
        if names > 1:
            raise InvalidSetting(
                f"The database {file} has {names} names (hard links), and servers that use it by several names destroy "
                "it. Delete the others (`find / -samefile FILE` lists them), or use a copy"
            )
        check_log(file)


def check_log(file: Path) -> None:
    """Check that the log beside a SQLite database is its own.

    A killed server leaves its log, and SQLite takes what is in it for changes of any file that has the name. A database
    with a log of its own says in its head that it has one; a backup says that it has none.

    Raises:
        InvalidSetting: it is that of another one.
        OSError: one of the two cannot be read.
    """
    log = Path(f"{file}-wal")
    if not log.exists() or not log.stat().st_size:
        return
    with file.open("rb") as opened:
        versions = opened.read(20)[18:]
    if versions == _WITHOUT_LOG:
        raise InvalidSetting(
            f"The database {file} was put in the place of another one, whose log is still beside it: SQLite would mix "
            f"the two. Move {log} and {file}-shm away, or delete them, and start again"
        )


class OpenedFile:
    """Notices that the file of a database is not the one that was opened.

    SQLite goes on with a file that was deleted, moved or replaced: what it writes is gone with its last connection.
    """

    def __init__(self, url: str, opened: FileIdentity | None = None) -> None:
        """Expect the file that this server was started on; without it, the one that is noted first."""
        file = sqlite_file(url)
        self._path = None if file is None else str(file.absolute())
        self._opened = opened

    def note(self) -> None:
        """Take what is there for the database: a connection to it has just been opened."""
        if self._opened is None:
            self._opened = self._found()

    def check(self) -> None:
        """Check that it is still there.

        Raises:
            DatabaseUnavailable: it is not; nothing was changed.
        """
        if self._opened is not None and self._found() != self._opened:
            raise DatabaseUnavailable(
                f"The database {self._path} was deleted, moved or replaced while this server has it open. Put it back, "
                "or stop all servers on it and start them again"
            )

    def _found(self) -> FileIdentity | None:
        return None if self._path is None else _identity(self._path)


def _identity(path: str) -> FileIdentity | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - before each change: a path of pathlib costs as much again
    except OSError:
        return None
    return found.st_dev, found.st_ino
