"""The folder of a SQLite database, created before SQLite opens a file in it."""

from __future__ import annotations

from app.database.connections.sqlite_files import sqlite_file
from app.errors import InvalidSetting


def make_database_folder(url: str) -> None:
    """Make the folder of a SQLite database; other databases have none.

    Raises:
        InvalidSetting: it cannot be made.
    """
    file = sqlite_file(url)
    if file is None:
        return
    folder = file.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidSetting(f"Cannot make the folder {folder} for the database: {error.strerror}") from error
