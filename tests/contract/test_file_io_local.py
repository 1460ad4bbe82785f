"""What LocalFiles does about crashes, full disks, permissions and odd files."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

import pytest

from app.engine.model.ids import Location
from app.errors import FileExists, FileMissing, FilesUnavailable, InvalidLocation
from app.fileio.local import LocalFiles

_NOBODY = 65534


def _location(path: Path) -> Location:
    return Location(f"file:{path}")


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that were synced, in order."""
    paths: list[str] = []
    really_sync = os.fsync

    def sync(descriptor: int) -> None:
        paths.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        really_sync(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    return paths


def test_a_file_is_synced_and_then_every_directory_that_may_be_new(tmp_path: Path, synced: list[str]) -> None:
    LocalFiles().write_new(_location(tmp_path / "a" / "b" / "x"), b"x")

    expected = [
        str(tmp_path / "a" / "b" / "x"),
        str(tmp_path / "a" / "b"),
        str(tmp_path / "a"),
        str(tmp_path),
    ]
    assert synced[:4] == expected
    assert synced[-1] == "/"


def test_later_files_of_a_directory_cost_two_syncs(tmp_path: Path, synced: list[str]) -> None:
    files = LocalFiles()
    files.write_new(_location(tmp_path / "a" / "x"), b"x")
    synced.clear()

    files.write_new(_location(tmp_path / "a" / "y"), b"y")

    assert synced == [str(tmp_path / "a" / "y"), str(tmp_path / "a")]


def test_a_new_sibling_directory_is_synced_up_to_what_is_known(tmp_path: Path, synced: list[str]) -> None:
    files = LocalFiles()
    files.write_new(_location(tmp_path / "a" / "x"), b"x")
    synced.clear()

    files.write_new(_location(tmp_path / "b" / "x"), b"x")

    assert synced == [str(tmp_path / "b" / "x"), str(tmp_path / "b"), str(tmp_path)]


def test_a_directory_that_was_made_anew_is_synced_anew(tmp_path: Path, synced: list[str]) -> None:
    files = LocalFiles()
    files.write_new(_location(tmp_path / "a" / "x"), b"x")
    (tmp_path / "a").rename(tmp_path / "old")
    synced.clear()

    files.write_new(_location(tmp_path / "a" / "x"), b"x")

    assert synced == [str(tmp_path / "a" / "x"), str(tmp_path / "a"), str(tmp_path)]


def test_a_directory_that_got_the_inode_of_a_deleted_one_is_synced_anew(
    tmp_path: Path, synced: list[str]
) -> None:
    files = LocalFiles()
    files.write_new(_location(tmp_path / "a" / "b" / "x"), b"x")
    (tmp_path / "a" / "b" / "x").unlink()
    (tmp_path / "a" / "b").rmdir()
    (tmp_path / "a").rmdir()
    synced.clear()

    files.write_new(_location(tmp_path / "a" / "b" / "c" / "x"), b"x")

    assert synced == [
        str(path) for path in (tmp_path / "a" / "b" / "c" / "x", *list((tmp_path / "a/b/c/x").parents)[:4])
    ]


def test_a_directory_another_process_made_is_not_trusted_to_be_synced(
    tmp_path: Path, synced: list[str]
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)

    LocalFiles().write_new(_location(tmp_path / "a" / "b" / "x"), b"x")

    assert str(tmp_path / "a") in synced
    assert str(tmp_path) in synced


@pytest.mark.parametrize("failing", ["write", "fsync", "close"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_write_that_fails_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, number: int
) -> None:
    really = getattr(os, failing)
    files = LocalFiles()
    location = _location(tmp_path / "a" / "x")

    def fail(descriptor: int, *arguments: object) -> None:
        if failing == "close":
            really(descriptor)
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, fail)
        with pytest.raises(FilesUnavailable, match=f"Cannot write {location}: {os.strerror(number)}"):
            files.write_new(location, b"content")

    assert not files.exists(location)
    files.write_new(location, b"content")


def test_an_interrupted_write_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    location = _location(tmp_path / "x")

    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            LocalFiles().write_new(location, b"content")

    assert not LocalFiles().exists(location)


def test_a_failed_sync_of_the_directory_takes_the_file_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really_sync = os.fsync
    files = LocalFiles()

    def sync(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink() == tmp_path / "a":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        really_sync(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(FilesUnavailable, match="Input/output error"):
        files.write_new(_location(tmp_path / "a" / "x"), b"content")

    assert not files.exists(_location(tmp_path / "a" / "x"))


def test_a_file_system_that_cannot_sync_directories_is_good_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really_sync = os.fsync

    def sync(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().is_dir():
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        really_sync(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    LocalFiles().write_new(_location(tmp_path / "a" / "x"), b"content")

    assert (tmp_path / "a" / "x").read_bytes() == b"content"


def test_writes_in_pieces_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really_write = os.write
    content = bytes(range(256)) * 10

    monkeypatch.setattr(os, "write", lambda descriptor, piece: really_write(descriptor, bytes(piece[:100])))
    LocalFiles().write_new(_location(tmp_path / "x"), content)

    assert (tmp_path / "x").read_bytes() == content


def test_reads_in_pieces_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really_read = os.read
    content = bytes(range(256)) * 10
    (tmp_path / "x").write_bytes(content)

    monkeypatch.setattr(os, "read", lambda descriptor, size: really_read(descriptor, min(size, 100)))

    assert LocalFiles().read(_location(tmp_path / "x")) == content


def test_a_disk_that_fills_up_half_way_leaves_no_file(tmp_path: Path) -> None:
    """The real thing, in a process that may not write more than 64 KB to a file."""
    told = _run(
        f"""
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
        try:
            files.write_new(Location("file:{tmp_path}/x"), bytes(1_000_000))
        except FilesUnavailable as error:
            print(error)
        """
    )

    assert told == f"Cannot write file:{tmp_path}/x: File too large"
    assert list(tmp_path.iterdir()) == []


def test_what_may_not_be_touched_is_unavailable_not_absent(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "x").write_bytes(b"x")
    (tmp_path / "closed").chmod(0)

    told = _run(
        f"""
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid({_NOBODY})
            os.setuid({_NOBODY})
        location = Location("file:{tmp_path}/closed/x")
        new = Location("file:{tmp_path}/closed/new")
        listing = lambda _: list(files.list_files(Location("file:{tmp_path}/closed")))
        for call in (files.read, files.exists, files.delete, listing, lambda _: files.write_new(new, b"")):
            try:
                print(call(location))
            except FilesUnavailable as error:
                print(str(error).replace("{tmp_path}", ""))
        """
    )

    (tmp_path / "closed").chmod(0o700)
    assert told.splitlines() == [
        "Cannot read file:/closed/x: Permission denied",
        "Cannot read file:/closed/x: Permission denied",
        "Cannot delete file:/closed/x: Permission denied",
        "Cannot list file:/closed: Permission denied",
        "Cannot write file:/closed/new: Permission denied",
    ]


def test_directories_above_that_cannot_be_opened_are_no_hindrance() -> None:
    """A service that may pass through its warehouse's parents, but not read them, can still write."""
    with tempfile.TemporaryDirectory() as name:
        above = Path(name) / "above"
        warehouse = above / "warehouse"
        warehouse.mkdir(parents=True)
        warehouse.chmod(0o777)
        above.chmod(0o311)
        Path(name).chmod(0o711)

        told = _run(
            f"""
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid({_NOBODY})
                os.setuid({_NOBODY})
            files.write_new(Location("file:{warehouse}/t/x"), b"x")
            print(files.read(Location("file:{warehouse}/t/x")))
            """
        )
        above.chmod(0o755)

    assert told == "b'x'"


def test_a_directory_that_cannot_be_synced_for_want_of_permission_is_told(tmp_path: Path) -> None:
    """Written, but not durable: that must not pass for success."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o333)

        told = _run(
            f"""
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid({_NOBODY})
                os.setuid({_NOBODY})
            try:
                files.write_new(Location("file:{name}/x"), b"x")
            except FilesUnavailable as error:
                print(error, files.exists(Location("file:{name}/x")))
            """
        )
        Path(name).chmod(0o700)

    assert told == f"Cannot write file:{name}/x: Permission denied False"


def _run(body: str) -> str:
    """Run Python in a process of its own and return what it printed."""
    prelude = """
        import os, resource
        from app.engine.model.ids import Location
        from app.errors import FilesUnavailable
        from app.fileio.local import LocalFiles
        files = LocalFiles()
    """
    script = textwrap.dedent(prelude) + textwrap.dedent(body)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_file_where_a_directory_is_needed_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(FilesUnavailable, match="Not a directory"):
        LocalFiles().write_new(_location(tmp_path / "file" / "x"), b"")
    with pytest.raises(FilesUnavailable, match="Not a directory"):
        LocalFiles().write_new(_location(tmp_path / "file" / "deeper" / "x"), b"")


def test_a_link_to_nowhere_where_a_directory_is_needed_is_told(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")

    with pytest.raises(FilesUnavailable, match="Not a directory"):
        LocalFiles().write_new(_location(tmp_path / "link" / "x"), b"")


def test_a_place_where_nothing_can_be_made_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # What deletes folders again and again would be fought for ever.
    monkeypatch.setattr("app.fileio.local._LONGEST_FIGHT_S", float("inf"))

    with pytest.raises(FilesUnavailable, match="Cannot write file:/proc/icetower/x: "):
        LocalFiles().write_new(Location("file:/proc/icetower/x"), b"")


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")

    with pytest.raises(FileExists):
        LocalFiles().write_new(_location(tmp_path / "link"), b"")

    assert not (tmp_path / "target").exists()


def test_a_directory_in_a_files_place_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()

    with pytest.raises(FileExists):
        LocalFiles().write_new(_location(tmp_path / "x"), b"")


def test_reading_follows_links_and_listing_does_not(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "real").write_bytes(b"x")
    (tmp_path / "t" / "link").symlink_to("real")
    (tmp_path / "t" / "circle").symlink_to(tmp_path / "t")

    files = LocalFiles()

    assert files.read(_location(tmp_path / "t" / "link")) == b"x"
    assert [file.location for file in files.list_files(_location(tmp_path / "t"))] == [
        _location(tmp_path / "t" / "real")
    ]


def test_devices_and_pipes_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    for location in (_location(tmp_path / "pipe"), Location("/dev/zero"), Location("/dev/full")):
        assert not LocalFiles().exists(location)
        with pytest.raises(FileMissing):
            LocalFiles().read(location)
    assert list(LocalFiles().list_files(_location(tmp_path))) == []


def test_a_file_that_has_more_than_it_says_is_read_within_the_bound() -> None:
    maps = Location("/proc/self/maps")  # of no bytes, it says

    assert LocalFiles().read_at_most(maps, 100) is None
    assert LocalFiles().read_at_most(maps, 1 << 30)


def test_a_name_longer_than_the_file_system_takes_is_no_location(tmp_path: Path) -> None:
    location = _location(tmp_path / ("x" * 300))

    with pytest.raises(InvalidLocation, match="File name too long"):
        LocalFiles().write_new(location, b"")
    with pytest.raises(InvalidLocation, match="File name too long"):
        LocalFiles().exists(location)


def test_names_that_are_not_utf8_are_listed_and_can_be_deleted(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")).write_bytes(b"x")
    files = LocalFiles()

    (file,) = files.list_files(_location(tmp_path))
    files.delete(file.location)

    assert list(tmp_path.iterdir()) == []


def test_a_tree_that_vanishes_while_it_is_listed_is_no_error(tmp_path: Path) -> None:
    files = LocalFiles()
    for number in range(50):
        files.write_new(_location(tmp_path / str(number) / "x"), b"")
    stop = threading.Event()

    def empty() -> None:
        for number in range(50):
            (tmp_path / str(number) / "x").unlink()
            (tmp_path / str(number)).rmdir()
        stop.set()

    thread = threading.Thread(target=empty)
    thread.start()
    while not stop.is_set():
        list(files.list_files(_location(tmp_path)))
    thread.join()

    assert list(files.list_files(_location(tmp_path))) == []


def test_what_is_remembered_of_directories_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.fileio.local._MOST_REMEMBERED", 5)
    files = LocalFiles()

    for number in range(30):
        files.write_new(_location(tmp_path / str(number) / "x"), b"")

    assert len(files._anchored) <= 5 + 10


def test_empty_folder_is_deleted_and_a_full_one_is_not(tmp_path: Path) -> None:
    files = LocalFiles()
    files.write_new(Location(f"{tmp_path}/t/data/a"), b"a")
    assert not files.delete_empty_folder(Location(f"{tmp_path}/t/data"))
    assert not files.delete_empty_folder(Location(f"{tmp_path}/absent"))
    files.delete(Location(f"{tmp_path}/t/data/a"))

    assert files.delete_empty_folder(Location(f"{tmp_path}/t/data"))
    assert files.delete_empty_folder(Location(f"file://{tmp_path}/t"))
    assert not (tmp_path / "t").exists()
    assert not files.delete_empty_folder(Location("file:/"))


def test_writers_find_a_folder_though_others_delete_it_while_it_is_empty(tmp_path: Path) -> None:
    stop = threading.Event()

    def delete() -> None:
        while not stop.is_set():
            LocalFiles().delete_empty_folder(Location(f"{tmp_path}/t"))

    thread = threading.Thread(target=delete)
    thread.start()
    try:
        for number in range(60):
            LocalFiles().write_new(Location(f"{tmp_path}/t/{number}"), b"a")
            LocalFiles().delete(Location(f"{tmp_path}/t/{number}"))
    finally:
        stop.set()
        thread.join()


def test_folders_are_made_however_deep_they_are(tmp_path: Path) -> None:
    files, folder = LocalFiles(), f"{tmp_path}{'/b' * 1_500}"

    files.write_new(Location(f"{folder}/x"), b"x")
    files.create_folder(Location(f"{folder}/c"))

    assert files.read(Location(f"{folder}/x")) == b"x"
    assert files.list_folder(Location(f"{folder}/c")) == []
    # Pytest's own way to delete them calls itself for each of them.
    subprocess.run(["rm", "-r", tmp_path / "b"], check=True)


@pytest.mark.parametrize("longer", [0, 1])
def test_file_is_written_only_where_it_can_be_read(tmp_path: Path, longer: int) -> None:
    files, left = LocalFiles(), 4095 - len(f"{tmp_path}/{'n' * 100}")
    # As few folders as their names may be long, all about the same: the folder of tests has any length.
    count = -(-left // 201)
    folders = "".join("/" + "f" * ((left + number) // count - 1) for number in range(count))
    location = Location(f"{tmp_path}{folders}/{'n' * (100 + longer)}")

    if longer:
        for write in (files.write_new, files.write_once):
            with pytest.raises(InvalidLocation, match="File name too long"):
                write(location, b"x")
        with pytest.raises(InvalidLocation, match="File name too long"):
            files.create_folder(location)
        assert not list(tmp_path.iterdir())
    else:
        files.write_new(location, b"x")
        assert files.read(location) == b"x"
