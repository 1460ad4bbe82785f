"""Where the file of a SQLite database lies."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote


def sqlite_file(url: str) -> Path | None:
    """Return the file that SQLAlchemy opens for a database URL; None if the URL names none.

    In a URL, a question mark or a percent sign of a path is written `%3F` or `%25`.
    """
    scheme, _, path = url.partition(":///")
    path = unquote(path.partition("?")[0])
    if not scheme.startswith("sqlite") or not path or path.startswith((":memory:", "file:")):
        return None
    return Path(path)
