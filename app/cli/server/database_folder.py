"""The folder of a SQLite database, created before SQLite opens a file in it."""

from __future__ import annotations

from pathlib import Path

from app.errors import InvalidSetting


def make_database_folder(url: str) -> None:
    """Make the folder of a SQLite database; other databases have none.

    Raises:
        InvalidSetting: it cannot be made.
    """
    scheme, _, path = url.partition(":///")
    if not scheme.startswith("sqlite") or not path.startswith("/"):
        return
    folder = Path(path.partition("?")[0]).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidSetting(f"Cannot make the folder {folder} for the database: {error.strerror}") from error
