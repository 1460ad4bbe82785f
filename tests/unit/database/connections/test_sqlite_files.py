"""Which file a database URL names, as SQLite itself says."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from app.database.connections.database import Database
from app.database.connections.sqlite_files import found_file, sqlite_file


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///{}/a.db",
        "sqlite:///{}/a b%25.db?timeout=3",
        "sqlite:///file:{}/a.db?uri=true",
        "sqlite:///file://{}/a.db?mode=rwc&uri=1",
        "sqlite:///file://localhost{}/a%2520b.db?uri=True",
        "sqlite:///file:{}/a%253Fb.db?uri=yes",
        "sqlite:///file:{}/a%3Fmode=rwc?uri=true",
    ],
)
def test_the_file_of_a_url_is_the_one_that_sqlite_opens(url: str, tmp_path: Path) -> None:
    url = url.format(tmp_path)
    assert found_file(url) is None
    with closing(Database.open(url)) as database:
        opened = database.fetch("SELECT file FROM pragma_database_list", ())[0][0]

    assert sqlite_file(url) == Path(opened)
    assert found_file(url) == (Path(opened).stat().st_dev, Path(opened).stat().st_ino)


@pytest.mark.parametrize("url", ["postgresql://host/name", "sqlite://", "sqlite:///:memory:"])
def test_other_databases_have_no_file(url: str) -> None:
    assert sqlite_file(url) is None
    assert found_file(url) is None
