"""Which file a database URL names, as SQLite itself says."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from app.database.connections.database import Database
from app.database.connections.sqlite_files import found_file, prepare_file, sqlite_file
from app.errors import InvalidSetting


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


def test_a_folder_is_refused_as_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=f"{tmp_path} is a folder; name a file in it"):
        prepare_file(f"sqlite:///{tmp_path}")


def test_a_file_with_two_names_is_refused_and_a_symbolic_link_is_none(tmp_path: Path) -> None:
    path, link = tmp_path / "a.db", tmp_path / "elsewhere" / "link.db"
    url, other = f"sqlite:///{path}", f"sqlite:///{link}"
    prepare_file(url)
    path.write_bytes(b"")
    prepare_file(url)
    link.parent.mkdir()
    link.symlink_to(path)
    prepare_file(other)

    link.unlink()
    link.hardlink_to(path)
    for each, name in ((url, path), (other, link)):
        with pytest.raises(InvalidSetting, match=f"{name} has 2 names"):
            prepare_file(each)
    path.unlink()
    prepare_file(other)
