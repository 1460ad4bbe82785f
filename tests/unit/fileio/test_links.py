"""Symbolic links in a local warehouse lead nowhere outside it."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from app.engine.model.ids import Location
from app.errors import InvalidLocation
from app.fileio import links
from app.fileio.links import links_below, real_location
from app.fileio.local import LocalFiles
from app.fileio.locations import folder_around, folder_name, folders_of, may_be_inside, place_of
from app.fileio.schemes import files_for

OUT = "a symbolic link leads out of the warehouse"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "warehouse"
    (root / "t").mkdir(parents=True)
    return root


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "precious").write_bytes(b"precious")
    return folder


def at(path: Path) -> Location:
    return Location(f"file://{path}")


def test_a_folder_that_is_a_link_leads_nowhere_out(root: Path, outside: Path) -> None:
    files = LocalFiles([f"file://{root}"])
    (root / "t" / "data").symlink_to(outside)
    victim = at(root / "t" / "data" / "precious")

    for use in (
        lambda: files.read(victim),
        lambda: files.delete(victim),
        lambda: files.write_new(at(root / "t" / "data" / "new"), b"x"),
        lambda: files.write_new(at(root / "t" / "data" / "deeper" / "new"), b"x"),
    ):
        with pytest.raises(InvalidLocation, match=OUT):
            use()

    assert [path.name for path in outside.iterdir()] == ["precious"]


def test_a_file_that_is_a_link_is_not_read_and_only_the_link_is_deleted(root: Path, outside: Path) -> None:
    files = LocalFiles([str(root)])
    link = root / "t" / "file"
    link.symlink_to(outside / "precious")

    with pytest.raises(InvalidLocation, match=OUT):
        files.read(at(link))
    files.delete(at(link))

    assert not link.is_symlink()
    assert (outside / "precious").read_bytes() == b"precious"


def test_links_that_stay_inside_are_followed(root: Path) -> None:
    files = LocalFiles([str(root)])
    (root / "u").symlink_to(root / "t")

    files.write_new(at(root / "u" / "file"), b"x")

    assert files.read(at(root / "t" / "file")) == b"x"
    assert files.read(at(root / "u" / "file")) == b"x"
    files.delete(at(root / "u" / "file"))
    assert not (root / "t" / "file").exists()


def test_a_link_to_another_allowed_root_is_followed(root: Path, outside: Path) -> None:
    files = LocalFiles([str(root), str(outside)])
    (root / "u").symlink_to(outside)

    assert files.read(at(root / "u" / "precious")) == b"precious"


def test_the_root_itself_may_be_a_link(root: Path, tmp_path: Path, outside: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(root)
    files = LocalFiles([str(link)])
    (root / "out").symlink_to(outside)

    files.write_new(at(link / "new" / "file"), b"x")

    assert files.read(at(link / "new" / "file")) == b"x"
    with pytest.raises(InvalidLocation, match=OUT):
        files.read(at(link / "out" / "precious"))


def test_files_of_a_warehouse_have_its_roots(root: Path, outside: Path) -> None:
    (root / "out").symlink_to(outside)
    victim = at(root / "out" / "precious")

    with pytest.raises(InvalidLocation, match=OUT):
        files_for({}, local_roots=(str(root),)).read(victim)
    assert files_for({}).read(victim) == b"precious"


def test_links_that_a_listing_passes_over_are_found(root: Path, outside: Path) -> None:
    (root / "t" / "metadata").symlink_to(outside)
    (root / "u").symlink_to(root / "t")
    (root / "t" / "missed").symlink_to(outside / "precious")
    (root / "t" / "unimportant").symlink_to(outside / "precious")
    (root / "t" / "dangling").symlink_to(outside / "missed")

    found = set(links_below(f"file://{root}/", lambda place: place.endswith("/missed")))

    assert found == {f"file://{root}/t/metadata", f"file://{root}/t/missed", f"file://{root}/u"}
    assert list(links_below("s3://bucket/t", lambda _place: True)) == []
    assert list(links_below(f"file://{root}/nothing", lambda _place: True)) == []


def test_a_path_that_is_longer_than_any_is_not_followed(root: Path) -> None:
    """To look for links in each of its folders takes hours."""
    (root / "u").symlink_to(root / "t")
    location = f"file://{root}/u/" + "a/" * (1 << 20)

    assert real_location(location) == location
    assert real_location(f"file://{root}/u/a") == f"file://{root}/t/a"


def test_what_is_longer_than_any_name_is_in_no_folder() -> None:
    """The folders of this one, each with all before it, would take 2 TB."""
    location = "s3://b/" + "a/" * (1 << 20) + "f"

    for ask in (folders_of, folder_around, folder_name):
        with pytest.raises(InvalidLocation, match="more than 32768"):
            ask(location)
    assert place_of(location) == location
    assert not may_be_inside(location, "s3://b")


GET_PATH = 50
"""As macOS has it."""


@pytest.mark.parametrize("below", ["", "/not/there/yet"])
def test_names_are_spelled_as_the_file_system_has_them(
    root: Path, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    """On macOS `T` and `t` are mostly one folder: a table at each of them would have the other's files in its own."""

    def control(descriptor: int, command: int, buffer: bytes) -> bytes:
        assert command == GET_PATH
        path = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        return path.replace("/warehouse/t", "/Warehouse/T").encode().ljust(len(buffer), b"\0")

    monkeypatch.setattr(links, "_GET_PATH", GET_PATH)
    monkeypatch.setattr(fcntl, "fcntl", control)

    assert real_location(f"file://{root}/t{below}") == f"file://{root.parent}/Warehouse/T{below}"
    assert real_location("file:///") == "file:///"
