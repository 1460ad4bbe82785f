"""Where the file of a SQLite database lies, and its folder."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from app.errors import InvalidSetting


def sqlite_file(url: str) -> Path | None:
    """Return the file that SQLAlchemy opens for a database URL; None if the URL names none.

    In a URL, a question mark or a percent sign of a path is written `%3F` or `%25`.
    """
    scheme, _, path = url.partition(":///")
    path = unquote(path.partition("?")[0])
    if not scheme.startswith("sqlite") or not path or path.startswith((":memory:", "file:")):
        return None
    return Path(path)


def make_database_folder(url: str) -> None:
    """Make the folder of a SQLite database; other databases have none.

    Raises:
        InvalidSetting: it cannot be made.
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
